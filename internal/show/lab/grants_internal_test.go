package lab

import "testing"

// The last digits of a clock fall while the clock grows. Ordinals do not.
func TestOrdinalsOfTokensHaveTheirOrder(t *testing.T) {
	t.Parallel()
	var g grants
	for i, token := range []string{"1795628394961339", "1795628396530445", "1795628396530445", "999"} {
		g.add(token)
		if want := []string{"#1", "#2", "#2", "#1"}[i]; g.ordinal(token) != want {
			t.Errorf("the token %s is %s, want %s", token, g.ordinal(token), want)
		}
	}
	if got := g.ordinal("1795628396530445"); got != "#3" {
		t.Errorf("the newest token is %s, want #3, as an older one came later", got)
	}
}
