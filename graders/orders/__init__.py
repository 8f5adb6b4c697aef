"""Order checkpoints: what an agent wrote, read as a pharmacist reads it, against declared rows (field/orders.md).

    check_declaration(checkpoint)                            what in its rows cannot be read
    judge(checkpoint, context, written, records, texts)      the verdict, with what became of each order

Nothing here imports pandas or pint: it also runs beside sandboxed task code.
"""

from graders.orders.authority import Authority
from graders.orders.declaration import check as check_declaration
from graders.orders.judging import JudgedOrder, OrderContext, OrderJudgement, judge

__all__ = ["Authority", "JudgedOrder", "OrderContext", "OrderJudgement", "check_declaration", "judge"]
