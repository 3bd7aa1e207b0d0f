"""What is protected, and whether it is true: a guarantee in words, and an audit that tries to break it."""

from tacit.arms import KLUCBCF, Bernoulli
from tacit.simulation.audits import audit_policy

policy = KLUCBCF(n_arms=2, epsilon=1.0)
environment = Bernoulli(means=(0.3, 0.7))

if __name__ == "__main__":
    guarantee = policy.guarantee(1_000)
    print(guarantee.sentence())
    for rewards in (1, 10, 100):
        person = guarantee.for_user(rewards, delta=1e-6)
        print(f"a person with {rewards:>3} rewards: epsilon {person.epsilon:.3g} at delta 1e-6")
    honest = audit_policy(policy, environment, horizon=5, runs=20_000)
    print(honest.sentence())
    # The twin that must fail: the same policy claims half of what it spends.
    liar = audit_policy(policy, environment, horizon=5, runs=20_000, epsilon=0.5)
    print(liar.sentence())
