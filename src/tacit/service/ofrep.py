"""The same decisions for any OpenFeature SDK, by the OpenFeature Remote Evaluation Protocol.

A flag is an experiment; ``targetingKey`` is the person. A server SDK asks for one flag when it is needed, so
that decision counts as shown. A web SDK asks for all at once before it knows which one it needs, so
those are not shown yet; identity, probability, time and instructions are in ``metadata``.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tacit.service.http import (
    RequestError,
    decode_body,
    find_experiment,
    json_answer,
    read_body,
)
from tacit.service.messages import (
    DecisionRequest,
    Flag,
    FlagContext,
    FlagProblem,
    Flags,
)
from tacit.service.responses import decide
from tacit.serving.core import RefusedError
from tacit.serving.experiment import Experiment

_context = msgspec.json.Decoder(FlagContext)


async def evaluate(request: Request) -> Flag | Response:
    """Decide for one flag."""
    try:
        body = await read_body(request)
        asked = decode_body(_context, body) if body else FlagContext()
        return await _evaluate(find_experiment(request), asked.context, shown=True)
    except RequestError as error:
        if error.status != 404:
            raise
        status, code, detail = 404, "FLAG_NOT_FOUND", error.detail
    except (msgspec.MsgspecError, ValueError) as error:
        status, code, detail = 400, _code(error), str(error)
    return json_answer(FlagProblem(request.path_params["name"], code, detail), status)


async def evaluate_all(request: Request, asked: FlagContext) -> Response:
    """Decide for every experiment that can be decided for this context; none counts as shown."""
    manager, context = request.app.state.manager, asked.context
    flags: list[Any] = []
    for name, each in manager.experiments.items():
        try:
            # An identity made of person and state: asked again, the answer is the same.
            state = (name, context.get("targetingKey"), each.core.learned, each.core.mode)
            seed = "\0".join(map(str, state)).encode()
            id = hashlib.blake2b(seed, key=manager.secret, digest_size=16).hexdigest()
            flags.append(await _evaluate(each, context, shown=False, id=id))
        except ValueError as error:
            flags.append(FlagProblem(name, "GENERAL", str(error)))
    answer = json_answer(Flags(flags))
    tag = f'"{hashlib.blake2b(bytes(answer.body), digest_size=12).hexdigest()}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    answer.headers["etag"] = tag
    return answer


async def _evaluate(experiment: Experiment, context: dict[str, Any], **how: Any) -> Flag:
    names = {"person": "targetingKey", "eligible": "eligible", "contexts": "contexts"}
    given = {word: context[name] for word, name in names.items() if context.get(name) is not None}
    answered = await decide(experiment, msgspec.convert({**given, **how}, DecisionRequest))
    metadata: dict[str, Any] = {"id": answered.id, "probability": answered.probability}
    if answered.instructions is not None:
        metadata["report_at"] = answered.report_at
        # OpenFeature's metadata holds words, numbers and truth values only.
        metadata["instructions"] = msgspec.json.encode(answered.instructions).decode()
    reason = "SPLIT" if answered.reason == "learn" else answered.reason.upper()
    return Flag(experiment.name, answered.option, answered.option, reason, metadata)


def _code(error: Exception) -> str:
    if isinstance(error, RefusedError) and error.reason == "person":
        return "TARGETING_KEY_MISSING"
    if isinstance(error, msgspec.ValidationError):
        return "INVALID_CONTEXT"
    return "PARSE_ERROR" if isinstance(error, msgspec.DecodeError) else "GENERAL"
