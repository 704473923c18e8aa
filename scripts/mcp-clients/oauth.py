"""Takes the OAuth libraries of PyPI through the whole flow: authorize with PKCE, consent, token, refresh, introspect, revoke.

usage: oauth.py ORIGIN PERSON COOKIES CLIENT_ID SECRET      fails with what was not so
"""

import os
import subprocess
import sys

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import requests
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauthlib.oauth2 import WebApplicationClient
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

origin, person, cookies, client_id, secret = sys.argv[1:]
REDIRECT = "http://127.0.0.1:9/callback"
SCOPES = ["runs:read", "contacts:read"]
server = requests.get(f"{origin}/.well-known/oauth-authorization-server").json()


def allow(url):
    run = [sys.executable, person, cookies, "allow", url]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


def ends(name, token, introspected):
    assert introspected["active"] and introspected["client_id"] == client_id, introspected
    header = {"Authorization": f"Bearer {token}"}
    status = requests.get(f"{origin}/api/v1/me", headers=header).status_code
    assert status == 401, status
    print(f"{name}: authorized, refreshed, introspected, revoked")


def authlib():
    for method in ["client_secret_basic", "client_secret_post"]:
        session = AuthlibSession(client_id, secret, scope=SCOPES, redirect_uri=REDIRECT, code_challenge_method="S256",
                                 token_endpoint_auth_method=method, revocation_endpoint_auth_method=method)
        verifier = "v" * 64
        url, _ = session.create_authorization_url(server["authorization_endpoint"], code_verifier=verifier)
        token = session.fetch_token(server["token_endpoint"], authorization_response=allow(url), code_verifier=verifier)
        assert session.get(f"{origin}/api/v1/me").status_code == 200
        new = session.refresh_token(server["token_endpoint"], refresh_token=token["refresh_token"])
        assert new["refresh_token"] != token["refresh_token"]
        seen = session.introspect_token(server["introspection_endpoint"], token=new["access_token"]).json()
        assert session.revoke_token(server["revocation_endpoint"], token=new["refresh_token"]).status_code == 200
        ends(f"Authlib {method}", new["access_token"], seen)


def requests_oauthlib():
    session = OAuth2Session(client=WebApplicationClient(client_id), scope=SCOPES, redirect_uri=REDIRECT, pkce="S256")
    url, _ = session.authorization_url(server["authorization_endpoint"])
    token = session.fetch_token(server["token_endpoint"], authorization_response=allow(url), client_secret=secret)
    assert session.get(f"{origin}/api/v1/me").status_code == 200
    auth = HTTPBasicAuth(client_id, secret)
    new = session.refresh_token(server["token_endpoint"], refresh_token=token["refresh_token"], auth=auth)
    assert new["refresh_token"] != token["refresh_token"]
    seen = requests.post(server["introspection_endpoint"], {"token": new["access_token"]}, auth=auth).json()
    assert requests.post(server["revocation_endpoint"], {"token": new["refresh_token"]}, auth=auth).status_code == 200
    ends("requests-oauthlib", new["access_token"], seen)


authlib()
requests_oauthlib()
