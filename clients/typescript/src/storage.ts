/**
 * Where owed reports wait: IndexedDB, localStorage or memory.
 *
 * One operation is enough, and it is atomic: two tabs that decide what to send for the same decision
 * must come to the same report. What does not change is not written.
 */

/** Something that keeps JSON values by key. */
export interface Store {
  /** Replace what is kept under a key by what `change` makes of it (undefined: nothing). */
  update<T>(key: string, change: (old: T | undefined) => T | undefined): Promise<T | undefined>;
  keys(): Promise<string[]>;
}

/** Forgets when the page is left. */
export function memoryStore(): Store {
  const kept = new Map<string, unknown>();
  return {
    async update<T>(key: string, change: (old: T | undefined) => T | undefined) {
      const value = change(kept.get(key) as T | undefined);
      if (value === undefined) kept.delete(key);
      else kept.set(key, value);
      return value;
    },
    keys: async () => [...kept.keys()],
  };
}

/** Uses localStorage, one tab at a time; without locks two tabs could draw two reports, so it throws. */
export function localStore(storage: Storage = localStorage): Store {
  const { locks } = navigator;
  if (!locks) throw new Error("tacit: no locks");
  return {
    update: <T>(key: string, change: (old: T | undefined) => T | undefined) =>
      locks.request("tacit", () => {
        const text = storage.getItem(key);
        const old = text === null ? undefined : (JSON.parse(text) as T);
        const value = change(old);
        if (value === old) return value;
        if (value === undefined) storage.removeItem(key);
        else storage.setItem(key, JSON.stringify(value));
        return value;
      }) as Promise<T | undefined>,
    keys: async () => Object.keys(storage),
  };
}

/** Uses IndexedDB, which service workers can open too. */
export function indexedStore(name = "tacit"): Store {
  let opened: Promise<IDBDatabase> | undefined;
  const open = () =>
    (opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(name);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    }));
  const run = async <R>(mode: IDBTransactionMode, work: (store: IDBObjectStore, give: (value: R) => void) => void) => {
    const database = await open();
    return new Promise<R>((resolve, reject) => {
      const transaction = database.transaction(name, mode, { durability: "strict" });
      let result: R;
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = transaction.onerror = () => reject(transaction.error);
      work(transaction.objectStore(name), (value) => (result = value));
    });
  };
  return {
    update: <T>(key: string, change: (old: T | undefined) => T | undefined) =>
      run<T | undefined>("readwrite", (store, give) => {
        const read = store.get(key) as IDBRequest<T | undefined>;
        read.onsuccess = () => {
          const value = change(read.result);
          give(value);
          if (value === read.result) return;
          if (value === undefined) store.delete(key);
          else store.put(value, key);
        };
      }),
    keys: () =>
      run<string[]>("readonly", (store, give) => {
        const read = store.getAllKeys();
        read.onsuccess = () => give(read.result.map(String));
      }),
  };
}

/**
 * The best there is: what a browser refuses to keep, this page still remembers.
 *
 * A budget that is forgotten with the page would be no budget: there it counts as spent.
 */
export function bestStore(): Store {
  let chosen: Promise<Store> | undefined;
  const choose = async (): Promise<Store> => {
    for (const make of [indexedStore, localStore]) {
      try {
        const store = make();
        await store.update<number>("tacit", (old = 0) => 1 - old); // what stays is not written
        return store;
      } catch {
        // Refused by the browser: the next one.
      }
    }
    const store = memoryStore();
    await store.update("tacit spent", () => Infinity);
    return store;
  };
  const store = () => (chosen ??= choose());
  return {
    update: async (key, change) => (await store()).update(key, change),
    keys: async () => (await store()).keys(),
  };
}
