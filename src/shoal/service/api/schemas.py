"""How the service reads messages of ``shoal.wire``, and how OpenAPI documents them."""

from inspect import getdoc
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, Field, GetCoreSchemaHandler, create_model

from shoal.service.campaign import Frozen

JSON = "application/json"


class Checked:
    """Lets FastAPI read a message: ``Annotated[Message, Body(), Checked(field=narrower type)]``."""

    def __init__(self, **rules: Any) -> None:
        self._rules = rules

    def __get_pydantic_core_schema__(
        self, message: type[msgspec.Struct], handler: GetCoreSchemaHandler
    ) -> Any:
        """Return a schema that checks a body as a closed, strict model, and makes the message."""
        fields: dict[str, Any] = {
            field.name: (self._rules.get(field.name, field.type), _default(field))
            for field in msgspec.structs.fields(message)
        }
        model = create_model(message.__name__, __base__=Frozen, __doc__=getdoc(message), **fields)
        made = AfterValidator(lambda checked: message(**dict(checked)))
        return handler.generate_schema(Annotated[model, made])


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return Field(default_factory=field.default_factory)
    return ... if field.required else field.default


def request_body(message: type) -> dict[str, Any]:
    """Return OpenAPI of a request that msgspec reads."""
    return {"requestBody": {"required": True, "content": _content(message)}}


def answer(message: type, description: str) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI of an answer that msgspec writes."""
    return {200: {"description": description, "content": _content(message)}}


def _content(message: type) -> dict[str, Any]:
    (schema,), parts = msgspec.json.schema_components([message], ref_template="{name}")

    def inline(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return inline(parts[value["$ref"]])
            return {key: inline(item) for key, item in value.items()}
        return [inline(item) for item in value] if isinstance(value, list) else value

    return {JSON: {"schema": inline(schema)}}
