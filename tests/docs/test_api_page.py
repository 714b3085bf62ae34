"""The page about the API has the routes that there are."""

from tests.docs.api_routes import PAGE, written


def test_the_page_lists_every_route_as_the_code_has_it() -> None:
    page = PAGE.read_text()
    assert page == written(page), "python -m tests.docs.api_routes writes the table anew"
