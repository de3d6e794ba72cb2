"""What public functions and methods take has a type that an editor can use: none is `Any`."""

import inspect
import re

import holdfast as hf


def annotations():
    for name in hf.__all__:
        thing = getattr(hf, name)
        members = {name: thing} if inspect.isfunction(thing) else {}
        if inspect.isclass(thing):
            members = {
                f"{name}.{member}": getattr(value, "__func__", value)
                for member, value in vars(thing).items()
                if not member.startswith("_")
            }
        for where, function in members.items():
            if inspect.isfunction(function):
                for parameter in inspect.signature(function).parameters.values():
                    if parameter.kind is not parameter.VAR_KEYWORD:  # words that are passed on
                        yield where, parameter.name, str(parameter.annotation)


def without_arguments(annotation):
    """A type without what stands in brackets: an array of anything is a type."""
    while "[" in annotation:
        annotation = re.sub(r"\[[^][]*\]", "", annotation)
    return annotation


def test_no_public_parameter_is_any():
    found = list(annotations())
    assert len(found) > 150
    assert [each for each in found if re.search(r"\bAny\b", without_arguments(each[2]))] == []
    assert [each for each in found if "." not in each[0] and re.search(r"\bAny\b", each[2])] == []


def test_a_parameter_without_a_type_is_seen():
    assert without_arguments("Mapping[str, tuple[Any, ...]] | None") == "Mapping | None"
    assert re.search(r"\bAny\b", without_arguments("Sequence[int] | Any"))


def test_a_query_lists_what_users_ask_it():
    query = hf.counts(hf.Hierarchy.from_parents([-1, 0, 0]))
    assert {"answer", "by", "count", "differences", "labels", "levels", "n", "sensitivity", "tree"} <= set(dir(query))
    assert not {"single", "pair", "pair_kinds", "mask", "in_steps"} & set(dir(query))
    assert len(dir(hf.workload([[1, 1]]))) <= 17
