"""The decision service: HTTP on a store, with tokens, a dashboard and OpenFeature's protocol."""

from tacit.service.app import make_app
from tacit.service.experiments import ExperimentManager
from tacit.service.server import open_service, serve
from tacit.service.tokens import Tokens

__all__ = ["ExperimentManager", "Tokens", "make_app", "open_service", "serve"]
