"""Compare policies: what privacy costs where the best arm changes.

Five policies play on the same tables, so their differences are not luck. Prints a table with 95%
intervals and what each policy protects, and draws the curves to ``compare-example-regret.png`` and ``.svg``.
"""

from tacit.simulation import Study, run_study
from tacit.simulation.plots import draw_curves

study = Study(
    name="compare-example",
    environment={"name": "riser", "n_arms": 2, "segments": 4},
    policies=(
        {"name": "ucb1"},
        {"name": "klucb"},
        {"name": "sw-ucb"},
        {"name": "sw-klucb-cf", "epsilon": 1.0},
        {"name": "sw-klucb-cf", "epsilon": 4.0, "label": "sw-klucb-cf, epsilon 4"},
    ),
    horizon=8_000,
    repetitions=8,
)

if __name__ == "__main__":
    result = run_study(study, ".")
    for row in result.summary():
        interval = f"{row['low']:7.0f} to {row['high']:7.0f}"
        print(
            f"{row['label']:<26} regret {row['mean']:7.0f}  ({interval})  epsilon {row['epsilon']}"
        )
    print(*draw_curves(result, "."))
