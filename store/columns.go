package store

import "reflect"

// columnsOf lists the columns that a row struct scans, in its order.
func columnsOf[T any]() []string {
	t := reflect.TypeFor[T]()
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("ch"); name != "" {
			names = append(names, "`"+name+"`")
		}
	}
	return names
}
