package httpapi

import (
	"github.com/gin-gonic/gin"

	"example.com/shop/internal/controlroom/page"
)

// serveControlRoom adds the control room, a page that shows what the API and the event stream tell its reader. Its
// files have no secrets; an API key that the service asks for, the page asks for too.
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
