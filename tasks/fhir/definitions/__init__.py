"""HL7's R4 definitions, sliced to what the element check and the search engine read; made by `slicer`."""
