package language

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestKnown(t *testing.T) {
	for _, s := range []string{
		"", "OK.", "123 456 → 7", "\xff\xfe", "Thanks!", "μ = 3 σ, α < 0.05", "The Åland islands, Dvořák and Şahin are names that you will read here.",
		"You can return it with your receipt.", "He said “och det är bra” and left the room without a word.", "def f(x): return x + 1  # for all i in range(n)",
		"Die Rückgabe ist innerhalb von 30 Tagen möglich.", "Puede devolverlo con el recibo.", "Vous pouvez le rendre avec le reçu.", "Può restituirlo con lo scontrino.",
		"Pode devolver com o recibo, se não o tiver usado.", "U kunt het terugbrengen met de bon.", "Można to zwrócić z paragonem w ciągu 30 dni.",
		strings.Repeat("This is what you should know about it. ", 50) + strings.Repeat("Det är inte så att jag måste göra det. ", 50),
	} {
		if !Known(s) {
			t.Errorf("%q is taken for another language", s)
		}
	}
	for lang, s := range map[string]string{
		"sv": "Du kan lämna tillbaka varan inom 30 dagar om du har kvar kvittot.", "da": "Du kan ikke returnere varen, når du har brugt den, men jeg vil gerne hjælpe dig.",
		"no": "Du kan ikke levere den tilbake etter at du har brukt den, men jeg hjelper deg gjerne.", "fi": "Voit palauttaa tuotteen, jos sinulla on kuitti, mutta se ei saa olla käytetty.",
		"cs": "Zboží můžete vrátit do 30 dnů, pokud máte účtenku.", "hu": "A terméket nem lehet visszaküldeni, ha már használta, és nincs meg a blokk.",
		"ro": "Puteți returna produsul dacă aveți bonul, dar nu și dacă este folosit.", "tr": "Ürünü fişiniz varsa iade edebilirsiniz, ancak kullanılmış ürünler için bu mümkün değil.",
		"lt": "Prekę galite grąžinti per 30 dienų, jei turite kvitą.", "vi": "Bạn có thể trả lại hàng trong vòng 30 ngày nếu có hóa đơn.",
		"el": "Μπορείτε να επιστρέψετε το προϊόν με την απόδειξη.", "ru": "Вы можете вернуть товар с чеком.", "ar": "يمكنك إرجاع المنتج مع الإيصال.", "zh": "您可以凭收据退货。", "ja": "レシートがあれば返品できます。",
		"hi": "आप रसीद के साथ सामान वापस कर सकते हैं।", "ko": "영수증이 있으면 반품할 수 있습니다.",
	} {
		if Known(s) {
			t.Errorf("%s: %q is taken for a known language", lang, s)
		}
	}
}

// Answers in 37 other languages, a quarter of them of 5 to 8 words, some without their accents, and in the eight that are learnt, with names, loans,
// quotations and code. The lists of small words were written before them and made longer after them.
func TestKnownOfAnswers(t *testing.T) {
	told := func(file string) (others, all map[string]int) {
		others, all = map[string]int{}, map[string]int{}
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var r struct{ Lang, Text string }
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if all[r.Lang]++; !Known(r.Text) {
				others[r.Lang]++
			}
		}
		return others, all
	}
	found, n := 0, 0
	others, all := told("others.jsonl")
	for lang := range all {
		found, n = found+others[lang], n+all[lang]
	}
	if found < 390 || n != 444 {
		t.Errorf("%d of %d are told: %v", found, n, others)
	}
	for _, lang := range strings.Fields("el bg sr ru uk ar he fa hi bn zh ja ko th") { // by their script
		if others[lang] != all[lang] {
			t.Errorf("%s: %d of %d", lang, others[lang], all[lang])
		}
	}
	if wrong, _ := told("learnt.jsonl"); len(wrong) > 0 {
		t.Errorf("learnt languages are taken for others: %v", wrong)
	}
}

func BenchmarkKnown(b *testing.B) {
	for lang, s := range map[string]string{
		"en": "You can return it with your receipt within 30 days of purchase. ", "de": "Die Rückgabe ist innerhalb von 30 Tagen nach dem Kauf möglich. ",
		"sv": "Du kan lämna tillbaka varan inom 30 dagar om du har kvar kvittot. ",
	} {
		text := strings.Repeat(s, 2048/len(s))
		b.Run(lang, func(b *testing.B) {
			for b.Loop() {
				Known(text)
			}
		})
	}
}
