package httpapi

import (
	"net"
	"strings"

	"github.com/gin-gonic/gin"
)

// refuseOtherSites refuses changes that a browser requests on behalf of a page of another site. With
// Config.LocalOnly it also refuses requests for other hosts than this machine. Otherwise another site could point its
// name to a loopback address (DNS rebinding), and the browser would consider this service a part of that site.
func (a *api) refuseOtherSites(c *gin.Context) {
	switch c.FullPath() {
	case livePath, readyPath, metricsPath:
		return // balancers and collectors use any host name; these pages are read-only and have no secrets
	}
	if a.LocalOnly && !isLocal(c.Request.Host) {
		a.refuse(c, refuse(TypeForbidden, "Authentication is disabled, so only localhost and loopback addresses are served."))
		return
	}
	if err := a.sites.Check(c.Request); err != nil {
		a.refuse(c, refuse(TypeForbidden, "The request comes from a page of another site."))
	}
}

// isLocal reports whether host, with or without a port, is localhost or a loopback address.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
