package check

import "strings"

var months = []string{ // by their first letters in the languages of the packs
	"jan gen ene sty", "feb fév fev lut", "mar mär mrz maa", "apr avr abr kwi", "may mai mei mag maj", "jun jui giu cze", "jul juil lug lip",
	"aug aoû aou ago sie", "sep set wrz", "oct okt out ott paź paz", "nov lis", "dec déc dez dic gru",
}

// Date tells whether the match is a day of a person's life: day, month and year of 1900 to 2099, in any
// order that is in use; a year of two digits counts too.
func Date(text string, start, end int) bool {
	whole := end
	_, end = dateValue(text, start, end)
	match := text[start:end]
	if len(match) == 8 && isDigits(match) {
		return compactDate(match) && !partOfLonger(text, start, end)
	}
	if end == whole && partOfLonger(text, start, end) {
		return false
	}
	var parts []int
	var widths []int
	for i := 0; i < len(match); {
		j := i
		for j < len(match) && isDigit(match[j]) {
			j++
		}
		if j > i {
			parts, widths = append(parts, number(digits(match[i:j]))), append(widths, j-i)
		}
		i = max(j, i+1)
	}
	inRange := func(y, width int) bool { return width == 2 || y >= 1900 && y < 2100 }
	switch len(parts) {
	case 2: // the month is a word
		return inRange(parts[1], widths[1]) && namesMonth(match) && parts[0] >= 1 && parts[0] <= 31
	case 3:
		if widths[0] == 4 {
			return inRange(parts[0], 4) && day(parts[0], parts[1], parts[2])
		}
		return inRange(parts[2], widths[2]) && (day(parts[2], parts[1], parts[0]) || day(parts[2], parts[0], parts[1]))
	}
	return false
}

// dateValue leaves out the time of day behind a date ("1987-05-23T00:00").
func dateValue(text string, start, end int) (from, to int) {
	if day, time, ok := strings.Cut(text[start:end], "T"); ok && len(day) >= 8 && len(time) > 0 && isDigit(time[0]) {
		return start, start + len(day)
	}
	return start, end
}

func namesMonth(s string) bool {
	for _, word := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r < 'a' }) {
		for _, m := range months {
			for first := range strings.FieldsSeq(m) {
				if strings.HasPrefix(word, first) {
					return true
				}
			}
		}
	}
	return false
}
