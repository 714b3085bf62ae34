"""A project and a home of one's own, as the tests of agents have them."""

from tests.unit.agents.conftest import project as project
