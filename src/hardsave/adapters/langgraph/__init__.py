"""LangGraph: a checkpoint saver whose threads are timelines. Needs the extra `langgraph`."""

from hardsave.adapters.langgraph.saver import HardsaveSaver

__all__ = ["HardsaveSaver"]
