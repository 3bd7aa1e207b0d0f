"""The public names, frozen: a name that comes or goes is a decision, and is made here."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from tacit.core.registry import environments, policies

PUBLIC = {
    "tacit": """
        Comparison Identified Learner Result __version__ build compare identify register simulate
    """,
    "tacit.aggregation": """
        EdgeLearner EdgePlan Model Prio3 Report Verification best_chunk
    """,
    "tacit.arms": """
        AAE AdaPKLUCB Adversarial AlphaSample BOCPDKLUCBCF Bernoulli Beta Corruption
        CorruptionSchedule DPIMED DPKLUCB DPSE DPTopTwo DPZooming DoublingSWKLUCBCF Drifting
        EXP3 GAP GAPU GLRKLUCBCF Gaussian GraphFeedback KLUCB KLUCBCF LazyDPTS Lipschitz
        PIMEDCF PythonPolicy Recorded RewardFunction Riser Rotating SWKLUCBCF SWUCB
        ShuffledKLUCBCF SubGaussianUCB Switching TSN TimedKLUCBCF TopTwoCF TruncatedNormal
        UCB1 UCBN Uniform asymptotic_regret edit_rewards from_river wrap_plain_python
    """,
    "tacit.cli": """
        Address EngineName Json Out Workers app main progress_bar show
    """,
    "tacit.client": """
        AsyncClient Client Decision Outbox ServiceError
    """,
    "tacit.device": """
        Budget Channel MAX_EPSILON Reporter
    """,
    "tacit.diffusion": """
        BatchedTsallis ChangingTruth DiffusionBandit DiffusionLearning OutsiderPrivateDiffusion RecordedTruth
        RegretBounds SpyPrivateDiffusion THREE_AGENTS edit_losses edit_signals regret_bounds
    """,
    "tacit.dynamics": """
        LearningDynamics Recommendation SocialOptions edit_adoption popularity_noise recommend
    """,
    "tacit.simulation.evaluation": """
        Estimate Evaluation Log Replay doubly_robust evaluate importance_weighted open_bandit
        read_log replay self_normalised
    """,
    "tacit.engines": """
        ARRAYS Cluster Codec Engine JSON Processes SerialEngine Store code_stamp engine_named
        lock_run run_jobs
    """,
    "tacit.graphs": """
        Blocks Columns Csr EdgeFile Graph IndependenceNumber LazyGraph MixingMatrix Rmat
        Subnetworks Transition Walk adjacency
        barabasi_albert classic column_normalised complete components erdos_renyi
        from_networkx from_rustworkx from_scipy greedy_independent_set grid group_graph
        independence_number is_bipartite is_connected laplacian largest_component
        metropolis_step normalised_cut partition path read_edges read_graphml require_connected
        require_strongly_connected require_undirected ring
        sparse_laplacian star stochastic_block strong_components to_networkx to_rustworkx
        to_scipy uniform_independent_set watts_strogatz work_size write_edges write_graphml
    """,
    "tacit.populations": """
        ActorGroup LostError Partition Population Run Snapshots make_population play_in_partitions
        split_agents start_actors
    """,
    "tacit.privacy": """
        Amount ApproximateRelease AsymmetricResponse AuditResult BallRelease BinaryTree
        BoundedNoise BoundedNoiseRelease BudgetExceededError Cap Charge Claim
        ClampedLaplace ContinualSum DeclaredResult DiscreteGaussianRelease
        DiscreteLaplaceRelease Entry Gaussian GaussianMoments GaussianRelease Guarantee
        KAryResponse KAryResponseRelease L2Ball L2CalibratedLaplace
        L2CalibratedLaplaceRelease Laplace LaplaceRelease LeastPrivateRelease Ledger
        LedgerError LocalSum Mechanism NOT_PROTECTED NeighbouringPair OneRunResult
        Outcome Period Piecewise PiecewiseRelease PureRelease RandomizedResponse
        RandomizedResponseRelease Release SearchResult ShuffledBits ShuffledBitsRelease
        SquareRootToeplitz Staircase StaircaseRelease SubsetRelease SubsetSelection
        UnaryEncoding UnaryRelease audit audit_one_run brief check_declared compose
        composed_delta composed_epsilon gaussian_scale keep_probability least_private
        loss_distribution numerics_of search strength
    """,
    "tacit.simulation.plots": """
        COLOURS DASHES MAP_COLOURS draw_beliefs draw_curves draw_network_beliefs draw_privacy_cost
        figure save_figure
    """,
    "tacit.serving": """
        Allowance Core Decision Event Experiment ExperimentConfig Learner MemoryStore Receipt
        RefusedError SQLiteStore Store StoreError
    """,
    "tacit.service": """
        ExperimentManager Tokens make_app open_service serve
    """,
    "tacit.simulation": """
        Band CellResult Comparison Identified Played Result Study StudyResult audit_policy band_of
        compare identify play read run_study simulate
    """,
    "tacit.contextual": """
        CLUB CoLin CollaborativePolicy Delicious Factorised FedUCB Fitted GOBLin LastFM LearnedKernel LinUCB
        NoisySums PerReward PrivateContexts Published
        Question Recorded Residual RestartingLinUCB Statistics Synthetic Theory UsersEnvironment
        edit_rewards edit_user edit_visit principal_components recorded_table relation statistics_of
        tag_features
    """,
    "tacit_studies": """
        Figure Findings Finished Job Panel Paper Reproduction Row Series last_findings number_of pages
        papers
        reproduce reproductions
    """,
}


@pytest.mark.parametrize("package", PUBLIC)
def test_the_public_names(package):
    """A new policy or environment of a setting needs no line here; one that goes is missed."""
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    known = {id(kind) for kind in (*policies().values(), *environments().values())}
    new = {name for name in module.__all__ if id(getattr(module, name)) in known}
    frozen = PUBLIC[package].split()
    assert sorted({*module.__all__} - (new - {*frozen})) == frozen


# Numba itself looks into scipy when there is one; what is heavy there are the parts.
HEAVY = [
    "dp_accounting",
    "matplotlib",
    "networkx",
    "opendp",
    "pyarrow",
    "rich",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "typer",
]


def loaded(code: str) -> list[str]:
    probe = f"{code}; import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    modules: list[str] = json.loads(done.stdout)
    return modules


@pytest.mark.parametrize(
    "package",
    [
        "tacit",
        "tacit.arms",
        "tacit.contextual",
        "tacit.diffusion",
        "tacit.dynamics",
        "tacit.core.registry",
    ],
)
def test_importing_loads_nothing_heavy(package):
    modules = loaded(f"import {package}")
    assert [name for name in HEAVY if name in modules] == []


def test_a_heavy_import_would_be_noticed():
    assert "pyarrow" in loaded("import tacit, pyarrow")
