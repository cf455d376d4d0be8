package lab

import "fmt"

// failure ends a lab, or a worker of one, from wherever it is, as FailNow ends a test. So the steps of a lab stand
// below each other as they happen. It does not leave its goroutine: only [attempt] starts what may fail so.
type failure struct{ err error }

// attempt runs a script, and returns the error that has ended it.
func attempt(script func()) (err error) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case failure:
			err = end.err
		default:
			panic(end)
		}
	}()
	script()
	return nil
}

// check ends the script if there is an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// fail ends the script with an error.
func fail(format string, args ...any) { check(fmt.Errorf(format, args...)) }

// must returns a value, and ends the script if there is an error.
func must[T any](value T, err error) T {
	check(err)
	return value
}
