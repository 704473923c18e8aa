"""Ten operations through the client of openapi-python-client."""

import json
import os
import time
from typing import Any

import httpx
from svc_client import AuthenticatedClient
from svc_client.api.collections import get_import
from svc_client.api.events import list_events
from svc_client.api.identity import get_me
from svc_client.api.items import (
    bulk_create_items,
    bulk_upsert_items,
    create_item,
    import_items,
    list_items,
)
from svc_client.api.runs import create_run
from svc_client.api.webhooks import create_webhook_endpoint
from svc_client.models import (
    BulkCreate,
    BulkCreateItemsResponse200,
    BulkRow,
    BulkRowData,
    BulkUpsert,
    BulkUpsertItemsResponse200,
    CreateItemResponse201,
    CreateRunResponse200,
    CreateWebhookEndpointResponse201,
    GetImportResponse200,
    GetMeResponse200,
    Import,
    ImportItemsResponse201,
    ImportSettings,
    ImportStatus,
    Item,
    ListEventsResponse200,
    ListItemsResponse200,
    NewItem,
    NewItemData,
    NewRun,
    NewWebhookEndpoint,
    RunStatus,
)
from svc_client.types import UNSET

URL = os.environ["URL"]
KEY = os.environ["KEY"]
PRODUCTS = 1  # the demo's collection of products

client = AuthenticatedClient(base_url=URL, token=KEY, timeout=httpx.Timeout(120))


def server_sent_events(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """Starts a run and reads its events, as a program without a generated client would."""
    events: list[tuple[str, Any]] = []
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.stream("POST", f"{URL}/runs", json=body, headers=headers, timeout=120) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        event = ""
        for line in response.iter_lines():
            name, _, value = line.partition(":")
            if name == "event":
                event = value.strip()
            elif name == "data":
                events.append((event, json.loads(value)))
    return events


def bulk_row(**values: str | float) -> BulkRow:
    return BulkRow(data=BulkRowData.from_dict(values))


# 1. The key
me = get_me.sync(client=client)
assert isinstance(me, GetMeResponse200), me
assert me.data.livemode

# 2. A run
new_run = NewRun(input_="What is the capital of France?")
run = create_run.sync(client=client, body=new_run)
assert isinstance(run, CreateRunResponse200), run
assert run.data.status == RunStatus.COMPLETED
assert run.data.output

# 3. The same, streamed
events = server_sent_events(new_run.to_dict() | {"stream": True})
assert events[0][0] == "run.created"
assert events[-1][0] == "run.completed"

# 4. All pages of a list with a filter
tree = {"and": [{"field": "category", "op": "eq", "value": "toys"}, {"field": "price", "op": "gt", "value": 30}]}
toys: list[Item] = []
pages = 0
cursor: str | None = None
while pages == 0 or cursor:
    page = list_items.sync(
        PRODUCTS,
        client=client,
        filter_tree=json.dumps(tree),
        sort="-price",
        limit=5,
        starting_after=UNSET if cursor is None else cursor,
    )
    assert isinstance(page, ListItemsResponse200), page
    toys += page.data
    assert page.has_more == (page.next_cursor is not None)
    cursor = page.next_cursor
    pages += 1
assert pages > 1
assert len({item.id for item in toys}) == len(toys)
assert all(item.data["category"] == "toys" and item.data["price"] > 30 for item in toys)

# 5. Bulk create
rows = [bulk_row(name=f"Kite {number}", sku=f"TOY-830{number}", price=9.5) for number in (1, 2, 3)]
created = bulk_create_items.sync(PRODUCTS, client=client, body=BulkCreate(rows=rows))
assert isinstance(created, BulkCreateItemsResponse200), created
assert created.data.summary.created == 3


# 6. Upsert, twice with one idempotency key: the second response is a replay
def upsert() -> BulkUpsertItemsResponse200:
    body = BulkUpsert(match_on=["sku"], rows=[bulk_row(sku="TOY-8301", price=8.5)])
    response = bulk_upsert_items.sync(PRODUCTS, client=client, body=body, idempotency_key="openapi-python-client-1")
    assert isinstance(response, BulkUpsertItemsResponse200), response
    return response


first = upsert()
assert first.data.summary.updated == 1
assert upsert() == first

# 7. An error that names its parameter
refused = create_item.sync_detailed(
    PRODUCTS,
    client=client,
    body=NewItem(data=NewItemData.from_dict({"name": "Kite", "price": "cheap"})),
)
assert refused.status_code == 400
error = refused.parsed
assert error is not None and not isinstance(error, CreateItemResponse201)
assert error.error.code == "validation_error"
assert error.error.param == "data.price"

# 8. A webhook endpoint
endpoint = create_webhook_endpoint.sync(
    client=client,
    body=NewWebhookEndpoint(url="https://openapi-python-client.invalid/", enabled_events=["item.*"]),
)
assert isinstance(endpoint, CreateWebhookEndpointResponse201), endpoint
assert endpoint.data.secret and endpoint.data.secret.startswith("whsec_")

# 9. An import
started = import_items.sync(
    PRODUCTS,
    client=client,
    body=ImportSettings(content="sku,name,price\nTOY-8304,Chess,12.50\n", match_on=["sku"]),
)
assert isinstance(started, ImportItemsResponse201), started


def finished_import(import_id: str) -> Import:
    for _ in range(300):
        response = get_import.sync(PRODUCTS, import_id, client=client)
        assert isinstance(response, GetImportResponse200), response
        if response.data.finished_at:
            return response.data
        time.sleep(0.1)
    raise AssertionError("it took more than 30 seconds")


assert finished_import(started.data.id).status == ImportStatus.COMPLETED

# 10. A page of events
log = list_events.sync(client=client, type_="run.completed", limit=1)
assert isinstance(log, ListEventsResponse200), log
assert [event.type_ for event in log.data] == ["run.completed"]
assert log.pagination.total >= 2
