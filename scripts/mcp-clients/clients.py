"""Connects with the MCP clients of PyPI: by a key, and by OAuth with a person who allows the app. Each lists the tools and calls one.

usage: clients.py ORIGIN KEY PERSON COOKIES CLIENT…      fails with what was not so
"""

import asyncio
import os
import subprocess
import sys
import urllib.parse

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

origin, key, person, cookies, *chosen = sys.argv[1:]
ADDRESS = f"{origin}/api/v1/mcp"
HEADERS = {"Authorization": f"Bearer {key}"}
# `webbrowser` starts this program, and does not wait for it.
os.environ["BROWSER"] = f"{sys.executable} {person} {cookies} open %s &"


def worked(name, tools, called):
    assert 5 <= len(tools) <= 30, f"{name} lists {len(tools)} tools"
    assert "identity" in str(called), f"{name}: {called}"
    print(f"{name}: {len(tools)} tools, called", flush=True)


class Memory:
    """What a program keeps that has no storage."""

    tokens = client = answer = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client

    async def redirect(self, url):
        run = [sys.executable, person, cookies, "allow", url]
        sent = await asyncio.to_thread(subprocess.run, run, capture_output=True, text=True, check=True)
        self.answer = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(sent.stdout.strip()).query))

    async def callback(self):
        try:
            from mcp.shared.auth import AuthorizationCodeResult
        except ImportError:  # mcp 1
            return self.answer["code"], self.answer["state"]
        return AuthorizationCodeResult(code=self.answer["code"], state=self.answer["state"], iss=self.answer["iss"])


def provider():
    memory = Memory()
    metadata = OAuthClientMetadata(client_name="Check", redirect_uris=["http://127.0.0.1:9/callback"], token_endpoint_auth_method="none")
    return OAuthClientProvider(ADDRESS, metadata, memory, memory.redirect, memory.callback)


async def mcp():
    from mcp import Client
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    for mode in ["legacy", "auto"]:
        for how, options in [("key", {"headers": HEADERS}), ("OAuth", {"auth": provider()})]:
            async with create_mcp_http_client(**options) as http:
                async with Client(streamable_http_client(ADDRESS, http_client=http), mode=mode) as client:
                    tools = (await client.list_tools()).tools
                    worked(f"mcp ({mode}) by {how}", tools, (await client.call_tool("svc_get_me", {})).structured_content)


async def fastmcp():
    from fastmcp import Client
    from fastmcp.client.auth import OAuth
    from fastmcp.client.transports import StreamableHttpTransport

    for how, options in [("key", {"headers": HEADERS}), ("OAuth", {"auth": OAuth()})]:
        async with Client(StreamableHttpTransport(ADDRESS, **options)) as client:
            worked(f"fastmcp by {how}", await client.list_tools(), (await client.call_tool("svc_get_me", {})).structured_content)


async def langchain():
    from langchain_mcp_adapters.client import MultiServerMCPClient

    for how, options in [("key", {"headers": HEADERS}), ("OAuth", {"auth": provider()})]:
        client = MultiServerMCPClient({"svc": {"transport": "streamable_http", "url": ADDRESS, **options}})
        tools = await client.get_tools()
        called = next(tool for tool in tools if tool.name == "svc_get_me")
        worked(f"langchain-mcp-adapters by {how}", tools, await called.ainvoke({}))


async def openai_agents():
    from agents.mcp import MCPServerStreamableHttp

    for how, options in [("key", {"headers": HEADERS}), ("OAuth", {"auth": provider()})]:
        async with MCPServerStreamableHttp({"url": ADDRESS, **options}) as server:
            worked(f"openai-agents by {how}", await server.list_tools(), await server.call_tool("svc_get_me", {}))


async def main():
    for client in [mcp, fastmcp, langchain, openai_agents]:
        if client.__name__ in chosen:
            await client()


asyncio.run(main())
