"""Borrowed tables: pointers to array memory with a shape, for kernels called from Python.

numba counts references with atomic operations for each array that is passed between functions, alone or in a tuple.
This takes a hundred times as long as the small functions of the rules of fit. A kernel called from Python therefore
starts with `borrowed`, and then passes `Borrowed` tables, which are a pointer and a shape. Python holds the arrays
during the call; a table must not outlive the call.

A borrowed table supports ``table[i, j]`` or ``table[i]``, reading and writing, ``table[i]`` of a
two-dimensional table (a borrowed row) and ``table.shape``. Indices are not checked.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import create_struct_proxy, unpack_tuple
from numba.core.imputils import lower_builtin, lower_getattr
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import intrinsic, models, register_model


class Borrowed(types.Type):
    """Type of a borrowed table of `dtype` with one or two axes, in row-major order."""

    def __init__(self, dtype: types.Type, ndim: int) -> None:
        self.dtype = dtype
        self.ndim = ndim
        super().__init__(name=f"Borrowed({dtype}, {ndim}d)")

    @property
    def shape_type(self) -> types.Type:
        """Type of the shape."""
        return types.UniTuple(types.intp, self.ndim)


@register_model(Borrowed)
class _BorrowedModel(models.StructModel):
    def __init__(self, manager: Any, kind: Borrowed) -> None:
        members = [("data", types.CPointer(kind.dtype)), ("shape", kind.shape_type)]
        super().__init__(manager, kind, members)


@infer_getattr
class _BorrowedAttributes(AttributeTemplate):
    key = Borrowed

    def resolve_shape(self, table: Borrowed) -> types.Type:
        return table.shape_type


@lower_getattr(Borrowed, "shape")
def _shape(context: Any, builder: Any, kind: Borrowed, value: ir.Value) -> ir.Value:
    return create_struct_proxy(kind)(context, builder, value=value).shape


def _index_type(table: Borrowed, index: types.Type) -> types.Type | None:
    """Return the type to which the index of an element must be cast; None for an invalid index."""
    if table.ndim == 1 and isinstance(index, types.Integer):
        return types.intp
    if table.ndim == 2 and isinstance(index, types.BaseTuple) and len(index) == 2:
        return types.UniTuple(types.intp, 2)
    return None


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        table, index = args
        if not isinstance(table, Borrowed):
            return None
        if table.ndim == 2 and isinstance(index, types.Integer):
            return signature(Borrowed(table.dtype, 1), table, types.intp)
        cast = _index_type(table, index)
        return signature(table.dtype, table, cast) if cast else None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        table, index, _ = args
        cast = _index_type(table, index) if isinstance(table, Borrowed) else None
        return signature(types.none, table, cast, table.dtype) if cast else None


def _element(context: Any, builder: Any, kind: Borrowed, table: ir.Value, index: ir.Value) -> ir.Value:
    """Return the address of the element at `index`, one integer or two."""
    view = create_struct_proxy(kind)(context, builder, value=table)
    at = index
    if kind.ndim == 2:
        line, column = unpack_tuple(builder, index)
        width = builder.extract_value(view.shape, 1)
        at = builder.add(builder.mul(line, width), column)
    return builder.gep(view.data, [at])


@lower_builtin(operator.getitem, Borrowed, types.Any)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> ir.Value:
    table = sig.args[0]
    if sig.return_type != table.dtype:
        return _line(context, builder, table, *args)
    address = _element(context, builder, table, *args)
    return context.unpack_value(builder, table.dtype, address)


def _line(context: Any, builder: Any, kind: Borrowed, table: ir.Value, line: ir.Value) -> ir.Value:
    """Return one row of a two-dimensional table."""
    view = create_struct_proxy(kind)(context, builder, value=table)
    width = builder.extract_value(view.shape, 1)
    row = create_struct_proxy(Borrowed(kind.dtype, 1))(context, builder)
    row.data = builder.gep(view.data, [builder.mul(line, width)])
    row.shape = context.make_tuple(builder, types.UniTuple(types.intp, 1), [width])
    return row._getvalue()  # noqa: SLF001 (numba's API to read a proxy)


@lower_builtin(operator.setitem, Borrowed, types.Any, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> ir.Value:
    table, index, value = args
    context.pack_value(builder, sig.args[0].dtype, value, _element(context, builder, sig.args[0], table, index))
    return context.get_dummy_value()


def _borrowed_type(kind: types.Type) -> types.Type:
    """Return the result type of `borrowed` for an argument type."""
    if isinstance(kind, types.Array):
        return Borrowed(kind.dtype, kind.ndim)
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        return types.NamedTuple([_borrowed_type(member) for member in kind], kind.instance_class)
    return kind


def _lent(context: Any, builder: Any, kind: types.Type, value: ir.Value) -> ir.Value:
    """Return the result of `borrowed` for a value."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=value)
        table = create_struct_proxy(_borrowed_type(kind))(context, builder)
        table.data = array.data
        table.shape = array.shape
        return table._getvalue()  # noqa: SLF001
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        members = [_lent(context, builder, member, builder.extract_value(value, at)) for at, member in enumerate(kind)]
        return context.make_tuple(builder, _borrowed_type(kind), members)
    return value


@intrinsic
def _borrowed(_typing: Any, argument: types.Type) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> ir.Value:
        return _lent(context, builder, argument, args[0])

    return _borrowed_type(argument)(argument), codegen


borrowed: Any = _borrowed
"""Function that lends an array, or a named tuple with arrays, to the calling kernel.

Arrays must be C-contiguous with one or two axes.
"""
