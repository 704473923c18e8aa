// Takes the OAuth libraries of npm through the whole flow: authorize with PKCE, consent, token, refresh, introspect, revoke.
//
//   node oauth.mjs ORIGIN PERSON COOKIES CLIENT_ID SECRET      ends with 1 and says what was not so

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";

const [origin, person, cookies, clientId, secret] = process.argv.slice(2);
const redirect_uri = "http://127.0.0.1:9/callback";
const scope = "runs:read contacts:read";
const allow = async (url) => new URL((await promisify(execFile)("python3", [person, cookies, "allow", String(url)])).stdout.trim());
const insecure = { [oauth.allowInsecureRequests]: true };

async function me(token, status) {
  const answer = await fetch(`${origin}/api/v1/me`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(answer.status, status);
}

async function oauth4webapi(name, client_id, auth) {
  const issuer = new URL(origin);
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure }));
  const client = { client_id };
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint);
  const code_challenge = await oauth.calculatePKCECodeChallenge(verifier);
  url.search = new URLSearchParams({ response_type: "code", client_id, redirect_uri, code_challenge, code_challenge_method: "S256", scope, state });
  const params = oauth.validateAuthResponse(as, client, await allow(url), state);
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, await oauth.authorizationCodeGrantRequest(as, client, auth, params, redirect_uri, verifier, insecure));
  await me(tokens.access_token, 200);
  const next = await oauth.processRefreshTokenResponse(as, client, await oauth.refreshTokenGrantRequest(as, client, auth, tokens.refresh_token, insecure));
  assert.notEqual(next.refresh_token, tokens.refresh_token);
  const seen = await oauth.processIntrospectionResponse(as, client, await oauth.introspectionRequest(as, client, auth, next.access_token, insecure));
  assert(seen.active && seen.client_id === client_id && seen.iss === origin && seen.scope.split(" ").sort().join(" ") === "contacts:read runs:read", JSON.stringify(seen));
  await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, next.refresh_token, insecure));
  await me(next.access_token, 401);
  console.log(`oauth4webapi ${name}: authorized, refreshed, introspected, revoked`);
}

// Registers a client of its own, and asks for the interface of MCP alone.
async function openidClient() {
  const execute = [openid.allowInsecureRequests];
  const metadata = { client_name: "Check openid", redirect_uris: [redirect_uri] };
  const config = await openid.dynamicClientRegistration(new URL(origin), metadata, undefined, { algorithm: "oauth2", execute });
  const verifier = openid.randomPKCECodeVerifier();
  const state = openid.randomState();
  const code_challenge = await openid.calculatePKCECodeChallenge(verifier);
  const url = openid.buildAuthorizationUrl(config, { redirect_uri, scope, code_challenge, code_challenge_method: "S256", state, resource: `${origin}/api/v1` });
  const tokens = await openid.authorizationCodeGrant(config, await allow(url), { pkceCodeVerifier: verifier, expectedState: state });
  await me(tokens.access_token, 200);
  const next = await openid.refreshTokenGrant(config, tokens.refresh_token);
  assert((await openid.tokenIntrospection(config, next.access_token)).active);
  await openid.tokenRevocation(config, next.refresh_token);
  await me(next.access_token, 401);
  assert.equal((await openid.tokenIntrospection(config, next.access_token)).active, false);
  console.log("openid-client registered: authorized, refreshed, introspected, revoked");
}

await oauth4webapi("client_secret_basic", clientId, oauth.ClientSecretBasic(secret));
await oauth4webapi("client_secret_post", clientId, oauth.ClientSecretPost(secret));
const registered = await fetch(`${origin}/oauth/register`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ client_name: "Check none", redirect_uris: [redirect_uri], token_endpoint_auth_method: "none" }),
});
await oauth4webapi("none", (await registered.json()).client_id, oauth.None());
const { privateKey, publicKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
const jwk = { ...(await crypto.subtle.exportKey("jwk", publicKey)), kid: "1" };
const signing = await fetch(`${origin}/oauth/register`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ client_name: "Check keys", redirect_uris: [redirect_uri], token_endpoint_auth_method: "private_key_jwt", jwks: { keys: [jwk] } }),
});
await oauth4webapi("private_key_jwt", (await signing.json()).client_id, oauth.PrivateKeyJwt({ key: privateKey, kid: "1" }));
await openidClient();
