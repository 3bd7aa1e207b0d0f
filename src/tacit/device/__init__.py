"""The device half: from a reward and a server's instructions to a private report.

Only the standard library is used, and little of it. What a device is told and what it sends is
described in ``docs/device.md`` and ``schemas/``; ``vectors/`` holds what every implementation, in
any language, must reproduce.

Examples
--------
>>> from tacit.device import Reporter, instructions
>>> asked = instructions.randomized_response(1.0)
>>> reporter = Reporter(asked, id="d-1", max_epsilon=1.0)
>>> report = reporter.report(1.0)
>>> report == reporter.report(0.0)
True
"""

from tacit.device.channel import MAX_EPSILON, Channel
from tacit.device.reporter import Budget, Reporter

__all__ = ["MAX_EPSILON", "Budget", "Channel", "Reporter"]
