"""Reading a chart as a physician does: facts, timeline, medications, problems, labs, notes, and what is not there.

No page and no Streamlit in here: a script calls `ChartView(chart, patient, now)` and gets the same answers.
"""

from review_ui.chartview.view import ChartView

__all__ = ["ChartView"]
