// Package originguard protects HTTP servers that trust every client that can connect to them from web pages of other
// origins. A browser on the same machine or network can connect, and two kinds of pages use it:
//
//   - A cross-site page sends requests to the server's address. Its browser marks them with Sec-Fetch-Site and Origin.
//     http.CrossOriginProtection and AllMethods reject them.
//   - A DNS rebinding page lets its own host name resolve to the server's address, so that the browser takes the server
//     for the page's own site. The Host header has the page's host name; Hosts rejects it.
package originguard
