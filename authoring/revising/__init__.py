"""How findings become a draft proposal: what a model is sent, what it may answer, what of that is kept.

    prompt.md      what the model is told, versioned and hashed
    fence.py       text of people and charts as data that cannot end its own fence
    request.py     task, findings, ratings and rejected changes as one question
    answer.py      the only shape an answer can have
    checking.py    which edits hold on the real bytes, and what goes back to the model
    drafts.py      the draft that comes of it, kept in jobs/<id>/ until a person sends it to decision

`authoring/reviser.py` puts them together.
"""
