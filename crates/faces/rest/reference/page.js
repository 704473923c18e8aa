// Starts the renderer. Everything it could load from another host is switched off; the page's content security policy
// would refuse it anyway.
"use strict";

// The key stays in this tab: `sessionStorage` ends with it. The renderer's own store would outlive the browser.
const KEY = "svc.reference.key";

function keepKey({ request, requestBuilder }) {
  const headers = request?.headers ?? requestBuilder?.headers;
  const key = headers?.get("authorization")?.match(/^Bearer (\S+)$/)?.[1];
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

Scalar.createApiReference("#reference", {
  sources: [
    { title: "Public API", slug: "public", url: "openapi.public.json" },
    { title: "Partner API", slug: "partner", url: "openapi.partner.json" },
  ],
  servers: [{ url: `${location.origin}/api/v1` }],
  authentication: {
    preferredSecurityScheme: "bearerAuth",
    securitySchemes: { bearerAuth: { token: sessionStorage.getItem(KEY) ?? "" } },
  },
  onBeforeRequest: keepKey,
  persistAuth: false,
  documentDownloadType: "none", // the page's own copy: its introduction links to the published one
  hideClientButton: true,
  showDeveloperTools: "never",
  telemetry: false,
  withDefaultFonts: false,
  agent: { disabled: true },
  mcp: { disabled: true },
});
