package httpapi

import (
	"net"
	"strings"

	"github.com/gin-gonic/gin"
)

// refuseOtherSites refuses changes that a browser asks for on behalf of a page of another site. With
// Config.LocalOnly it also refuses requests for other hosts than this machine: the name of another site may point to
// a loopback address by now (DNS rebinding), and for the browser that is the site itself.
func (a *api) refuseOtherSites(c *gin.Context) {
	switch c.FullPath() {
	case livePath, readyPath, metricsPath:
		return // balancers and collectors ask by any name; what they are told is no secret and changes nothing
	}
	if a.LocalOnly && !isLocal(c.Request.Host) {
		a.refuse(c, refuse(TypeForbidden, "Ask for localhost or a loopback address: no key is needed here, so no other host is served."))
		return
	}
	if err := a.sites.Check(c.Request); err != nil {
		a.refuse(c, refuse(TypeForbidden, "The request comes from a page of another site."))
	}
}

// isLocal reports whether host, with or without a port, is a name that only this machine has for itself.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
