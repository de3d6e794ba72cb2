"""What a query does to records: whether each row that it gives is made from one record alone (docs/theory/sources.md).

Only what is listed here is taken for row by row: kinds of expressions, functions by their names, parts of a SELECT. The
parser knows no functions, so every call keeps the name that is written, and no name is taken for another one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

logging.getLogger("sqlglot").addHandler(logging.NullHandler())  # what it cannot read is refused, and said once

#: The kinds of databases whose SQL is read, and how the parser calls them.
DIALECTS = {"sqlite": "sqlite", "postgresql": "postgres", "duckdb": "duckdb"}
#: Views upon views that are followed.
DEEPEST = 20
_FUNCTIONS = """
abs ceil ceiling floor round sign mod power pow sqrt exp ln log10 trunc greatest least coalesce nullif ifnull iif
lower upper length char_length substr substring trim ltrim rtrim replace left right lpad rpad reverse concat concat_ws
instr strpos starts_with split_part translate ascii unicode hex repeat regexp_replace regexp_extract
date_part date_trunc strftime date time datetime julianday year month day hour minute second quarter week dayofweek
dayofyear to_char to_date typeof
"""
#: Functions of one row in every kind: no aggregate, no set of rows, no state, no chance.
FUNCTIONS = frozenset(_FUNCTIONS.split())
#: Functions that tell the time of the run unless they are given another.
OF_TIME = frozenset({"date", "time", "datetime", "julianday", "strftime"})
#: Texts that mean another time in each run.
MOVING = frozenset({"now", "today", "tomorrow", "yesterday"})
#: Expressions of one row whose parts are expressions of one row.
ROW_BY_ROW: tuple[type[exp.Expr], ...] = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Case, exp.If, exp.Cast),
    *(exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Neg, exp.Not, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT),
    *(exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
    *(exp.Glob, exp.RegexpLike, exp.Escape, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe),
    *(exp.Interval, exp.Var, exp.Extract, exp.Trim, exp.Substring, exp.StrPosition, exp.Ceil, exp.Floor, exp.Any),
    *(exp.Array, exp.Tuple, exp.Anonymous, exp.Ordered),
)
_TYPES = """
BOOLEAN TINYINT SMALLINT INT BIGINT INT128 UTINYINT USMALLINT UINT UBIGINT FLOAT DOUBLE DECIMAL CHAR NCHAR VARCHAR
NVARCHAR TEXT DATE DATETIME TIME TIMESTAMP TIMESTAMPTZ TIMESTAMPNTZ TIMESTAMPLTZ TIMETZ INTERVAL UUID
"""
#: Types to which a value is cast.
TYPES = frozenset(_TYPES.split())
#: What a part of a query may have; anything else in it may let one record change the row of another.
PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset({"expressions", "from_", "where", "order", "with_"}),
    exp.Union: frozenset({"this", "expression", "distinct", "with_"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "db", "alias"}),
    exp.TableAlias: frozenset({"this"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Star: frozenset(),
    exp.In: frozenset({"this", "expressions"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to", "safe", "requires_string"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Where: frozenset({"this"}),
    exp.From: frozenset({"this"}),
}
#: How a part that is not allowed is called, and what to write instead of it.
WORDS = {
    "joins": "a join, which repeats or drops a record as another table says: public names belong into data.domain",
    "laterals": "a join, which repeats a record: select from one table",
    "group": "GROUP BY: leave it out, since holdfast counts the records itself",
    "having": "HAVING: leave it out",
    "distinct": "DISTINCT, which lets one record hide another: leave it out (max_records limits a person's records)",
    "limit": "LIMIT, which keeps a record by the place of others: leave it out",
    "offset": "OFFSET: leave it out",
    "windows": "WINDOW: leave it out",
    "qualify": "QUALIFY: leave it out",
    "sample": "a sample: leave it out",
    "pivots": "PIVOT: leave it out",
    "catalog": "a table of another database: name one of this",
    "recursive": "WITH RECURSIVE: leave it out",
}


class NotRowByRow(Exception):
    """It cannot be seen that each row is made from one record alone; the sentence says what stands in the way."""


@dataclass(frozen=True)
class Column:
    """A column of a result: whether it is a column of the records as it is, and the columns it is made from."""

    name: str
    plain: bool
    uses: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Stored:
    """What a database says about a name: a table with its columns, or a view with its definition.

    `key` is the same for the same table. `mixed`: some of its columns are computed from others, by the expressions
    `computed` where these must be looked at. `opaque`: how its rows are made cannot be read.
    """

    key: str
    columns: tuple[str, ...] | None
    definition: str | None = None
    mixed: bool = False
    computed: tuple[str, ...] = ()
    opaque: bool = False


@dataclass(frozen=True)
class Result:
    """What is known of a query that is row by row.

    `columns` is None where the columns of a table are not known. `drops`: some record may give no row. `filters`: the
    columns on which that depends. `tables`: the keys of the tables, `views` the definitions that were read, `opaque`
    the names whose making cannot be read, `functions` the names of those that are called.
    """

    columns: tuple[Column, ...] | None
    tables: tuple[str, ...]
    drops: bool = False
    filters: frozenset[tuple[str, str]] = frozenset()
    views: tuple[tuple[str, str], ...] = ()
    opaque: tuple[str, ...] = ()
    functions: frozenset[str] = frozenset()

    def refuse_unfit(self, person: str | None, count: str | None, *, replaces: bool) -> None:
        """Refuse what a statement about persons, counted rows or replaced records needs beyond single rows."""
        if replaces and self.drops:
            raise NotRowByRow(
                "WHERE, which changes how many records are counted where one is replaced: use neighbours: add-remove, "
                "or outside: {category: NAME}"
            )
        for name, what in ((person, "names the persons"), (count, "counts records")):
            if not all(column.plain for column in self._called(name)):
                raise NotRowByRow(f"a computed {name!r}, which {what}: select a column of the table as it is")
        for counted in self._called(count):
            others = [each.uses for each in self.columns or () if each is not counted]
            if any(counted.uses & uses for uses in (*others, self.filters)):
                raise NotRowByRow(
                    f"another use of {count!r}, which counts records: one of them would change how all others of its "
                    "row are counted"
                )

    def _called(self, name: str | None) -> list[Column]:
        return [each for each in self.columns or () if name is not None and each.name.lower() == name.lower()]


#: Finds what the parts of a name mean; None: there is no such table, or nothing is known yet.
Lookup = Callable[[Sequence[str]], Stored | None]


def anything(parts: Sequence[str]) -> Stored:
    """Take every name for a table of which nothing is known, as before a database is asked."""
    return Stored(".".join(parts).lower(), None)


def result_of_query(text: str, kind: str, lookup: Lookup = anything) -> Result:
    """What a query gives; refused where it is not seen to be row by row."""
    return _Reader(kind, lookup).query(_parsed(text, kind), {})


def result_of_table(parts: Sequence[str], kind: str, lookup: Lookup) -> Result:
    """What a table or view gives; refused where a view is not seen to be row by row."""
    return _Reader(kind, lookup).named(parts, ".".join(parts))


# --- parsing -------------------------------------------------------------------------------------------------------


@cache
def _parser(kind: str) -> tuple[Dialect, type[Any]]:
    """The dialect, and its parser without functions: a call then keeps its own name, and CURRENT_DATE is a column."""
    dialect = Dialect.get_or_raise(DIALECTS[kind])
    return dialect, type("Plain", (dialect.parser_class,), {"FUNCTIONS": {}, "NO_PAREN_FUNCTIONS": {}})


def _parsed(text: str, kind: str) -> exp.Expr:
    text = text.replace("\r\n", "\n")
    # What parsers read in different ways is left to none of them: escapes, quotes by dollars, braces, foreign blanks.
    if any(each in "\\${}" or not (each.isprintable() or each in "\n\t") for each in text):
        raise NotRowByRow("a backslash, a dollar sign, a brace or an unusual blank: write it without")
    if text.count("/*") > 1:
        raise NotRowByRow("several comments: leave them out")
    dialect, parser = _parser(kind)
    try:
        tokens = dialect.tokenize(text)
        statements = [each for each in parser(dialect=dialect).parse(tokens, text) if each is not None]
    except Exception:  # whatever a parser cannot read is not row by row
        raise NotRowByRow("words that cannot be read: write SELECT columns FROM table WHERE condition") from None
    if len(statements) != 1:
        raise NotRowByRow("several statements: write one SELECT")
    (tree,) = statements
    selects = sum(token.text.upper() == "SELECT" and token.token_type.name == "SELECT" for token in tokens)
    if selects > len(list(tree.find_all(exp.Select))):
        raise NotRowByRow("a SELECT that cannot be read: write SELECT columns FROM table WHERE condition")
    return tree


# --- what is row by row --------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    kind: str
    lookup: Lookup
    within: list[str] = field(default_factory=list)

    def query(self, node: exp.Expr | None, common: dict[str, Result | None]) -> Result:
        """A SELECT of one table, or UNION ALL of such; `common` holds what WITH names."""
        if isinstance(node, (exp.Select, exp.Union)):
            common = {**common, **self._common(node, common)}
        if isinstance(node, exp.Subquery):
            _refuse_parts(node)
            return self.query(node.this, common)
        if isinstance(node, exp.Union):
            return self._union(node, common)
        if not isinstance(node, exp.Select):
            raise NotRowByRow("something else than a SELECT: write SELECT columns FROM table WHERE condition")
        return self._select(node, common)

    def named(self, parts: Sequence[str], shown: str) -> Result:
        stored = self.lookup(parts)
        if stored is None:
            raise NotRowByRow(f"{shown!r}, which is no table or view of the database: name one")
        if stored.definition is None:
            result = self._table(stored)
            return replace(result, opaque=(shown,)) if stored.opaque else result
        if stored.key in self.within or len(self.within) >= DEEPEST:
            raise NotRowByRow(f"the view {shown!r}, which rests on too many others: name a table")
        self.within.append(stored.key)
        try:
            result = self._view(stored.definition)
        except NotRowByRow as reason:
            raise NotRowByRow(f"in the view {shown!r}, {reason}" if len(self.within) == 1 else str(reason)) from None
        finally:
            self.within.pop()
        return replace(result, views=((shown, " ".join(stored.definition.split())), *result.views))

    def _table(self, stored: Stored) -> Result:
        if stored.columns is None:
            return Result(None, (stored.key,))
        uses = [frozenset({(stored.key, name.lower())}) for name in stored.columns]
        if stored.mixed:  # which column is made from which does not matter: each counts as made from all
            uses = [frozenset().union(*uses)] * len(uses)
        columns = tuple(Column(name, True, used) for name, used in zip(stored.columns, uses, strict=True))
        result = Result(columns, (stored.key,))
        for words in stored.computed:
            node = _parsed(f"SELECT {words} AS made FROM computed", self.kind)
            if not isinstance(node, exp.Select) or len(node.expressions) != 1 or len(_filled(node)) != 2:
                raise NotRowByRow("a computed column that cannot be read: select others")
            called = self._projected(node, result, None)[1]
            result = replace(result, functions=result.functions | called)
        return result

    def _view(self, definition: str) -> Result:
        tree = _parsed(definition, self.kind)
        names: list[str] = []
        if isinstance(tree, exp.Create):
            target = tree.this
            if isinstance(target, exp.Schema):
                names = [each.name for each in target.expressions]
            tree = tree.expression
        result = self.query(tree, {})
        if not names:
            return result
        if result.columns is None or len(result.columns) != len(names):
            raise NotRowByRow("another number of names than of columns: make it again")
        return replace(
            result, columns=tuple(replace(each, name=name) for each, name in zip(result.columns, names, strict=True))
        )

    def _common(self, node: exp.Expr, common: dict[str, Result | None]) -> dict[str, Result | None]:
        within = node.args.get("with_")
        if within is None:
            return {}
        _refuse_parts(within)
        # SQLite lets a name mean itself and names that follow: until it is made, a name means nothing.
        made: dict[str, Result | None] = {self._name(each.args["alias"].this): None for each in within.expressions}
        for each in within.expressions:
            _refuse_parts(each)
            _refuse_parts(each.args["alias"])
            made[self._name(each.args["alias"].this)] = self.query(each.this, {**common, **made})
        return made

    def _union(self, node: exp.Union, common: dict[str, Result | None]) -> Result:
        """UNION ALL of different tables: a record is in one of them."""
        _refuse_parts(node)
        if type(node) is not exp.Union or node.args.get("distinct") is not False:
            raise NotRowByRow("UNION, INTERSECT or EXCEPT, which lets one record hide another: write UNION ALL")
        left, right = self.query(node.this, common), self.query(node.expression, common)
        if set(left.tables) & set(right.tables):
            raise NotRowByRow("one table twice, so that one record gives two rows: select each table once")
        columns = None
        if left.columns is not None and right.columns is not None:
            if len(left.columns) != len(right.columns):
                raise NotRowByRow("UNION ALL of different numbers of columns: select the same ones")
            pairs = zip(left.columns, right.columns, strict=True)
            columns = tuple(Column(a.name, a.plain and b.plain, a.uses | b.uses) for a, b in pairs)
        return Result(
            columns,
            (*left.tables, *right.tables),
            left.drops or right.drops,
            left.filters | right.filters,
            (*left.views, *right.views),
            (*left.opaque, *right.opaque),
            left.functions | right.functions,
        )

    def _select(self, node: exp.Select, common: dict[str, Result | None]) -> Result:
        _refuse_parts(node)
        start = node.args.get("from_")
        if start is None:
            raise NotRowByRow("no table: write SELECT columns FROM table WHERE condition")
        _refuse_parts(start)
        source, name = self._source(start.this, common)
        columns, functions = self._projected(node, source, name)
        filters = source.filters
        where, order = node.args.get("where"), node.args.get("order")
        if where is not None:
            _refuse_parts(where)
            used, called = self._expression(where.this, source, name)
            filters, functions = filters | used, functions | called
        if order is not None:  # the order of rows does not matter, but an aggregate would
            _refuse_parts(order)
            for each in order.expressions:
                _refuse_parts(each)
                alone = isinstance(each.this, exp.Column) and not each.this.args.get("table")
                if not (alone and each.this.name.lower() in {column.name.lower() for column in columns or ()}):
                    functions |= self._expression(each.this, source, name)[1]
        return replace(
            source,
            columns=columns,
            drops=source.drops or where is not None,
            filters=filters,
            functions=source.functions | functions,
        )

    def _source(self, node: exp.Expr, common: dict[str, Result | None]) -> tuple[Result, str | None]:
        """The one table or SELECT behind FROM, and the name by which its columns may be called."""
        alias = node.args.get("alias")
        if alias is not None:
            _refuse_parts(alias)
        name = None if alias is None or alias.this is None else self._name(alias.this)
        _refuse_parts(node)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, common), name
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise NotRowByRow("a function or a list in place of a table: select from a table")
        own, schema = self._name(node.this), node.args.get("db")
        if schema is None and any(self._same(own, each) for each in common):
            result = next(made for each, made in common.items() if self._same(own, each))
            if result is None:
                raise NotRowByRow("WITH that rests on itself: select from a table")
            return result, name or own
        parts = [own] if schema is None else [self._name(schema), own]
        return self.named(parts, ".".join(parts)), name or own

    def _projected(
        self, node: exp.Select, source: Result, name: str | None
    ) -> tuple[tuple[Column, ...] | None, frozenset[str]]:
        """The columns that a SELECT gives, and the functions it calls."""
        columns: list[Column] | None = []
        functions: frozenset[str] = frozenset()
        for each in node.expressions:
            star = each.this if isinstance(each, exp.Column) and isinstance(each.this, exp.Star) else each
            if isinstance(star, exp.Star):
                _refuse_parts(star)
                if star is not each:
                    self._refuse_other(each, name)
                columns = None if columns is None or source.columns is None else [*columns, *source.columns]
                continue
            inner = each.this if isinstance(each, exp.Alias) else each
            used, called = self._expression(inner, source, name)
            functions |= called
            behind = self._column(inner, source, name) if isinstance(inner, exp.Column) else None
            shown = each.alias if isinstance(each, exp.Alias) else each.output_name
            if columns is not None:
                columns.append(Column(shown, behind is not None and behind.plain, used))
        return None if columns is None else tuple(columns), functions

    def _expression(
        self, node: exp.Expr, source: Result, name: str | None
    ) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
        """The columns that an expression uses and the functions that it calls; refused unless of one row."""
        used: set[tuple[str, str]] = set()
        called: set[str] = set()
        waiting: list[exp.Expr] = [node]
        while waiting:
            each = waiting.pop()
            if type(each) not in ROW_BY_ROW:
                raise NotRowByRow(f"{_called(each)}, which is not known to be made from one record alone: leave it out")
            _refuse_parts(each)
            if isinstance(each, exp.Column):
                used |= self._column(each, source, name).uses
                continue
            if isinstance(each, exp.DataType) and (
                getattr(each.this, "name", "") not in TYPES or each.args.get("nested")
            ):
                raise NotRowByRow("a cast to a type that is not known: cast to a text or a number")
            if isinstance(each, exp.Anonymous):
                called.add(_function(each))
            elif isinstance(each, (exp.Ceil, exp.Floor, exp.Extract, exp.Trim, exp.Substring, exp.StrPosition)):
                called |= {words.lower() for words in (*type(each).sql_names(), "position", "ceiling")}
            if isinstance(each, (exp.Anonymous, exp.Cast, exp.TryCast)) and _moving(each):
                raise NotRowByRow("the time of the run, which is another in each: write the date")
            waiting.extend(each.iter_expressions())
        return frozenset(used), frozenset(called)

    def _column(self, node: exp.Column, source: Result, name: str | None) -> Column:
        self._refuse_other(node, name)
        if not isinstance(node.this, exp.Identifier):
            raise NotRowByRow(f"{_called(node.this)} in an expression: name single columns")
        own = self._name(node.this)
        if source.columns is None:
            return Column(own, True, frozenset((table, own.lower()) for table in source.tables))
        same = [each for each in source.columns if self._same(each.name, own)]
        if not same:
            raise NotRowByRow(f"{own!r}, which is no column of the table: texts stand in single quotes")
        return same[0] if len(same) == 1 else Column(own, False, frozenset(u for each in same for u in each.uses))

    def _refuse_other(self, node: exp.Column, name: str | None) -> None:
        table = node.args.get("table")
        if table is not None and (name is None or not self._same(self._name(table), name)):
            raise NotRowByRow("a column of another table: select columns of the one behind FROM")

    def _name(self, node: exp.Expr) -> str:
        """A name as the database reads it: PostgreSQL folds what is not quoted, the others do not care for case."""
        return node.name if self.kind != "postgresql" or node.args.get("quoted") else node.name.lower()

    def _same(self, one: str, other: str) -> bool:
        return one == other if self.kind == "postgresql" else one.lower() == other.lower()


def _filled(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def _refuse_parts(node: exp.Expr) -> None:
    allowed = PARTS.get(type(node))
    other = None if allowed is None else next((key for key in _filled(node) if key not in allowed), None)
    if other is not None:
        raise NotRowByRow(
            WORDS.get(other, f"{other.strip('_').upper()}, which is not known to be row by row: leave it out")
        )


def _function(node: exp.Anonymous) -> str:
    words = node.this
    if not isinstance(words, str) or words.lower() not in FUNCTIONS:
        shown = words if isinstance(words, str) else "a quoted name"
        raise NotRowByRow(f"the function {shown!r}, which is not known to be made from one record alone: leave it out")
    return words.lower()


def _moving(node: exp.Expr) -> bool:
    texts = (each.name.lower() for each in node.find_all(exp.Literal) if each.is_string)
    if any(MOVING & set(text.split()) for text in texts):
        return True
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in OF_TIME and node.find(exp.Column) is None


def _called(node: exp.Expr) -> str:
    words = {
        exp.Subquery: "a SELECT within an expression",
        exp.Select: "a SELECT within an expression",
        exp.Exists: "EXISTS",
        exp.Window: "a window function",
        exp.Star: "*",
        exp.Dot: "a name of several parts",
    }
    return words.get(type(node), f"the expression {type(node).__name__.upper()}")
