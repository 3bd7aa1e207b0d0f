"""Print the fingerprint of every case, for the process that compiles to compare with."""

import json

from battery.cases import cases, digest

if __name__ == "__main__":
    print(json.dumps({case.name: digest(case) for case in cases()}))
