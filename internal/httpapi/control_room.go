package httpapi

import (
	"github.com/gin-gonic/gin"

	"example.com/shop/internal/httpapi/page"
)

// serveControlRoom adds the control room, a page on top of the API and the event stream. Its files have no secrets.
// If the service needs an API key, the page asks for one.
func serveControlRoom(engine *gin.Engine) error {
	files, err := page.Files()
	if err != nil {
		return err
	}
	for path, file := range files {
		engine.GET(path, gin.WrapH(file))
		engine.HEAD(path, gin.WrapH(file))
	}
	return nil
}
