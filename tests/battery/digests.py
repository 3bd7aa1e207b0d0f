"""Print the fingerprint of every case, for the process that compiles to compare with."""

import json

from battery.cases import cases, digest
from tacit.arms.policies import shuffled_klucb_cf

if __name__ == "__main__":
    # Blocks that sixty rounds never fill take seconds to plan without a compiler.
    shuffled_klucb_cf._MOST = 40
    print(json.dumps({case.name: digest(case) for case in cases()}))
