// Package originguard protects HTTP servers that trust every client that can connect to them from web pages of other
// origins. A browser on the same machine or network can connect to the server. Two kinds of pages use such a browser:
//
//   - A cross-site page sends requests to the server's address. Its browser marks them with Sec-Fetch-Site and Origin.
//     http.CrossOriginProtection and AllMethods reject them.
//   - A DNS rebinding page resolves its own host name to the server's address, so that the browser treats the server as
//     the page's own site. The Host header contains the page's host name, which Hosts rejects.
package originguard
