"""The demonstration's task, its people's words and its model's script (`authoring/demo.py` plays them).

gout-allopurinol-demo/   a small task as its author first wrote it, with faults for reviewers to find
story.py                 what the reviewers find, what the scripted model answers, how people decide
"""
