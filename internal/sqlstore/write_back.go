package sqlstore

// writeBack stores what was computed from a level, whatever the row holds by now.
const writeBack = "UPDATE skus SET reserved = ?, version = ? WHERE sku = ?"
