package pii_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
)

// masked is a text, and what becomes of it; "" where nothing is found in it.
type masked []struct{ text, want string }

func (rows masked) test(t *testing.T) {
	t.Helper()
	for _, tc := range rows {
		want := tc.want
		if want == "" {
			want = tc.text
		}
		if got := pii.Mask(tc.text, audit.Output, find(t, tc.text)); got != want {
			t.Errorf("%q becomes %q, want %q", tc.text, got, want)
		}
	}
}

// secretsMasked wants each of the secrets masked that a text holds between two signs §, and nothing else.
func secretsMasked(t *testing.T, text string) {
	t.Helper()
	plain, want := "", ""
	for i, part := range strings.Split(text, "§") {
		if plain += part; i%2 == 1 {
			part = "[CREDENTIAL]"
		}
		want += part
	}
	if got := pii.Mask(plain, audit.Output, find(t, plain)); got != want {
		t.Errorf("%.200q becomes %.200q", plain, got)
	}
}

// Signs between the columns of a table or the items of a list are no part of the telephone number beside them.
func TestPhonesInLists(t *testing.T) {
	masked{
		{"phones: +14158672210,+14158672211,+14158672212", "phones: [PHONE],[PHONE],[PHONE]"},
		{"order_id,phone\n4821,+14158672210", "order_id,phone\n4821,[PHONE]"},
		{"order_id,phone\n4821,4158672210", "order_id,phone\n4821,[PHONE]"},
		{"2024-05-23,+14158672210,ok", "2024-05-23,[PHONE],ok"},
		{"x,+14158672210,12.50", "x,[PHONE],12.50"},
		{"[17,+14158672210]", "[17,[PHONE]]"},
		{"17/+14158672210:80", "17/[PHONE]:80"},
		{"call (415) 867-2210,(415) 867-2211", "call [PHONE],[PHONE]"},
		{"415-867-2210,415-867-2211", "[PHONE],[PHONE]"},
		{"call 415-867-2210:22", "call [PHONE]:22"},
		{"Il appelle 12 345 678 901,50 €", ""},
		{"ring at 2024-11-29 10:30", ""},
		{"tel 1,250000000", ""},
		{"tel 250000000,50", ""},
	}.test(t)
}

// Labels as environments, files, markup, command lines and people in seven languages write them.
func TestPasswords(t *testing.T) {
	const value = "Tr0ub4dor&3xyz"
	for _, label := range []string{
		"DB_PASSWORD=§", "MYSQL_ROOT_PASSWORD: §", "PGPASSWORD='§'", "userPassword: §", "redis_pwd: §", "pass: §", "pass=§", "pw: §", "smtp_pass=§",
		"Passwort ist §", "das Kennwort lautet §", "mot de passe est §", "contraseña es §", "la password è §", "hasło to §", "senha é §", "lösenord är §",
		"Das Passwort für das Portal ist §", "<password>§</password>", "mysql --password §", `"password" => "§"`, `password := "§"`, "curl -u maria:§ https://example.net",
		"SECRET_KEY=§", "client_secret=§", `{"password":"§"}`, "$_POST['password'] = '§';", "https://example.net/?password=§&page=2", "(password: §)", "password: §, and more", "The password is §.",
	} {
		text := strings.Replace(label, "§", value, 1)
		want := strings.Replace(label, "§", "[CREDENTIAL]", 1)
		if got := pii.Mask(text, audit.Output, find(t, text)); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	masked{
		{`{"password":"Tr0ub,4dor9xyz"}`, `{"password":"[CREDENTIAL]"}`},
		{`{"password":"Tr0ub4dor\"x9!"}`, `{"password":"[CREDENTIAL]"}`},
		{`{"password":"Tr0ub4dor9 x9!","n":1}`, `{"password":"[CREDENTIAL]","n":1}`},
		{"password: Your2Cents!9", "password: [CREDENTIAL]"},
		{"password: " + strings.Repeat("aB3$", 21) + " end", "password: [CREDENTIAL] end"},
		{"Sorry, your password is incorrect!", ""},
		{"The password was reset? Yes.", ""},
		{"contraseña: olvidada?", ""},
		{"password: minimum=8", ""},
		{"password = hash2(x)", ""},
		{"password=req.body.password1", ""},
		{"auth_token = generate_token_v2_for_user", ""},
		{"password=$DB_PASS1", ""},
		{"password: ./run/secrets/db1", ""},
		{"api_key: https://example.net/a1b2c3", ""},
		{"docker run -u maria:users2024 image", ""},
		{"Go to Password>Security2024 first", ""},
		{`"password": "must hold 8 characters"`, ""},
	}.test(t)
}

// Tokens are masked to their last character, however long.
func TestLongTokens(t *testing.T) {
	long := strings.Repeat("Zx81kQ-v", 220)
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"` + strings.Repeat("k", 400) + `"}`))
	for _, text := range []string{
		"token §" + head + ".eyJzdWIiOiIxIn0" + long + "." + long + "§ end", "Authorization: Bearer §" + long + "§ end", `{"access_token":"§` + long + `§"}`, "api_key=§" + long[:260] + "§",
		"see §ya29." + long[:500] + "§", "see §sk-" + long + "§ end", "see §glpat-" + long[:300] + "§.",
		"AccountKey=§" + strings.ReplaceAll(long, "-", "+")[:86] + "==§;EndpointSuffix",
	} {
		secretsMasked(t, text)
	}
}

// Tokens and keys as their issuers' own tools and interfaces write them.
func TestTokens(t *testing.T) {
	const hex, mixed = "3f9a1c7e5b2d8046f1e9c3a7b5d20468a1b2c3d4", "9fK2mQ7xLr4TzB8vYc1WnE6pHd3sJ0qGu5Ax2Rw7"
	for _, text := range []string{
		"https://api.telegram.org/bot§123456789:AAH9fK2mQ7xLr4TzB8vYc1WnE6pHd3sJ0qG§/getMe", `"SecretAccessKey": "§wJalrXUtnFEMI/K7MDENG/bPxRfiCYzQ8KEYab12§"`,
		"aws_session_token=§" + mixed + "§", "refresh_token=§" + mixed + "§", "session_token=§" + mixed[:20] + "§", "GITHUB_TOKEN=§" + hex + "§", "Ocp-Apim-Subscription-Key: §" + hex[:32] + "§",
		"§xoxe-1-" + mixed + "§", "§xoxe.xoxp-1-" + mixed + "§.", "§tvly-dev-" + mixed[:32] + "§", "§lsv2_pt_" + hex[:32] + "_" + hex[:10] + "§", "§pcsk_" + mixed + "§", "§rubygems_" + hex + hex[:8] + "§",
		"§dp.pt." + mixed + "§", "§pscale_pw_" + mixed + "§", "§NRAK-TO9WPOOSSM6NVDRUA9K1H6UBVWO§", "§HRKU-" + mixed[:36] + "§", "§EAAG" + mixed + mixed + "§", "(§ya29." + mixed + "§)",
	} {
		secretsMasked(t, text)
	}
}

// A password or token in an address is one, and no mailbox.
func TestAddressesWithPasswords(t *testing.T) {
	token := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	masked{
		{"redis://:r3d1sPw!9@cache:6379/0", "[CREDENTIAL]:6379/0"},
		{"postgres://app:sunflower@db.acme.io/prod", "[CREDENTIAL]/prod"},
		{"postgresql+asyncpg://app:sunflower@db.acme.io/prod", "[CREDENTIAL]/prod"},
		{"postgres://user:password@db.acme.io/prod", ""},
		{"https://name:word@acme.io/", ""},
		{"https://" + token + "@github.com/a/b", "https://[CREDENTIAL]@github.com/a/b"},
		{"mailto:jane@acme.io or https://acme.io/:jane@acme.io", "mailto:[EMAIL] or https://acme.io/:[EMAIL]"},
	}.test(t)
}

// What ends a sentence, names a file or ends a line in a log is no part of the number beside it.
func TestNumbersBesideSigns(t *testing.T) {
	masked{
		{"My SSN is 536-22-8193.Please help", "My SSN is [US_SSN].Please help"},
		{"My card is 4539453331478936.Please refund", "My card is [CREDIT_CARD].Please refund"},
		{"IBAN DE25370400442880407238.Bitte prüfen", "IBAN [IBAN].Bitte prüfen"},
		{"ssn_536-22-8193.pdf", "ssn_[US_SSN].pdf"},
		{"card_number_4539351197181471.pdf", "card_number_[CREDIT_CARD].pdf"},
		{"4539815806998335-09/27", "[CREDIT_CARD]-09/27"},
		{"DE89370400440532013000-EUR", "[IBAN]-EUR"},
		{`row: 'Mia\t536-22-8193\tOH'`, `row: 'Mia\t[US_SSN]\tOH'`},
		{`'x\nana@firma.es'`, `'x\n[EMAIL]'`},
		{`line1\n+1 415-867-2233\nline3`, `line1\n[PHONE]\nline3`},
		{`'\n4539351197181471\n'`, `'\n[CREDIT_CARD]\n'`},
		{"4539815806998335-22", ""},
		{"id_4539815806998335", ""},
		{"4539815806998335abc", ""},
		{"running 84.151.22.7.jar", ""},
	}.test(t)
}

// An account number is found in the groups of its country.
func TestNationalIBANs(t *testing.T) {
	for _, iban := range []string{
		"IT89X 05428 11101 839061363973", "FR93 30006 00001 62200020574 87", "GB20 NWBK 840244 73645208", "AT51 18902 46174923827", "CH56 15983 666603309366", "DE 46370400441174355437", "DE50.3704.0044.9069.6630.90",
	} {
		masked{{"Pay to " + iban + " by Friday", "Pay to [IBAN] by Friday"}, {"Pay to " + iban, "Pay to [IBAN]"}}.test(t)
	}
	masked{{"at 20 minutes past ten we all go home now", ""}}.test(t)
}

// Cards in groups that few write need the word; so do social security numbers without hyphens.
func TestLabelledNumbers(t *testing.T) {
	masked{
		{"card on two lines: 45398601 29554415", "card on two lines: [CREDIT_CARD]"},
		{"Her card is 4539 1488\n0343 6467.", "Her card is [CREDIT_CARD]."},
		{"Visa 4539  1488  0343  6467", "Visa [CREDIT_CARD]"},
		{"45398601 29554415", ""},
		{"name,SSN\nMia,536228193", "name,SSN\nMia,[US_SSN]"},
		{"| name | SSN |\n|---|---|\n| Mia | 536228193 |", "| name | SSN |\n|---|---|\n| Mia | [US_SSN] |"},
		{"employee_ssn=536228193", "employee_ssn=[US_SSN]"},
		{`"employeeSsn":"536228193"`, `"employeeSsn":"[US_SSN]"`},
		{`"social_security_number": "536228193"`, `"social_security_number": "[US_SSN]"`},
		{"Social security number (SSN): 536228193", "Social security number (SSN): [US_SSN]"},
		{"SSN (536228193)", "SSN ([US_SSN])"},
		{"my social is 536228193", "my social is [US_SSN]"},
		{"ref no. 203-73-0300", ""},
		{"Order 203-73-0300 shipped.", ""},
		{"invoice 203-73-0300", ""},
		{"Order 17, SSN 203-73-0300", "Order 17, SSN [US_SSN]"},
	}.test(t)
}

// A word for other numbers is about its own clause, and about a number with a country's code only right before it.
func TestOtherNumbersNearby(t *testing.T) {
	masked{
		{"Order 4821, Jane Roe, +1 415-867-2210", "Order 4821, Jane Roe, [PHONE]"},
		{"The order of Jane Roe +1 415-867-2210", "The order of Jane Roe [PHONE]"},
		{"My order is late, 415-867-2210 is my number", "My order is late, [PHONE] is my number"},
		{"client version 2.1 connected from 84.151.22.190", "client version 2.1 connected from [IP_ADDRESS]"},
		{"Chrome on Windows from 84.151.22.190", "Chrome on Windows from [IP_ADDRESS]"},
		{"release 5, host: 84.151.22.190", "release 5, host: [IP_ADDRESS]"},
		{"Pedido de Ana, 48213977C", "Pedido de Ana, [ES_NIF]"},
		{"order number: +14158672210", ""},
		{"ref. no. 415-867-2210", ""},
		{"order for the part 415-867-2210", ""},
		{"We upgraded from 10.2.33.4 to 10.2.34.1", ""},
	}.test(t)
}

// Identities, addresses, dates and telephones as people and programs of several countries write them.
func TestFurtherForms(t *testing.T) {
	masked{
		{"Personalausweisnummer: YRFPJZWPW", "Personalausweisnummer: [DE_ID_CARD]"},
		{"Ausweisnummer: YFYH6KCRJ8", "Ausweisnummer: [DE_ID_CARD]"},
		{"Ausweisnummer: YFYH6KCRJ7", ""},
		{"Reisepass-Nr.: HRP5LWCJJ", "Reisepass-Nr.: [PASSPORT]"},
		{"联系li.wei@163.com或li.wei@163.com", "联系[EMAIL]或[EMAIL]"},
		{"邮箱是li.wei@163.com,谢谢", "邮箱是[EMAIL],谢谢"},
		{"почта иван@почта.рф", "почта [EMAIL]"},
		{"peer 2a02:8108:1c40:3f2::1b: timeout", "peer [IP_ADDRESS]: timeout"},
		{"peer ::ffff:84.151.22.7 left", "peer [IP_ADDRESS] left"},
		{"host 2a02:8108::ffff:54.12.1.9 seen", "host [IP_ADDRESS] seen"},
		{"ffff:84.151.22.7 left", "ffff:[IP_ADDRESS] left"},
		{"DOB 23-May-1987", "DOB [DATE_OF_BIRTH]"},
		{`{"birthDate":"1987-05-23T00:00:00Z"}`, `{"birthDate":"[DATE_OF_BIRTH]T00:00:00Z"}`},
		{`{"dob":"19870523"}`, `{"dob":"[DATE_OF_BIRTH]"}`},
		{"ring 1234567 times", ""},
		{"call 955445400 failed", ""},
		{"office 4829173 sq ft", ""},
		{"mobile sales 1867 1478", ""},
		{"Ph: 4829 1736", "Ph: [PHONE]"},
		{"T: 4829 1736", "T: [PHONE]"},
		{"тел. 482-91-73", "тел. [PHONE]"},
		{"电话：13812348765", "电话：[PHONE]"},
		{"電話 03-4829-1736", "電話 [PHONE]"},
		{"携帯 090-4829-1736", "携帯 [PHONE]"},
	}.test(t)
}

// Passwords and keys as people say them, as commands and statements take them, as tables and programs hold them.
func TestPasswordsInOtherWords(t *testing.T) {
	for _, text := range []string{
		"I reset the password for the print server to §Kelp.Harbor19§ last night.", "Das Passwort vom Gästezugang wurde auf §Ahorn_Tal88§ geändert", "La contraseña del router es ahora §Farola!27§.",
		"§Kelp.Harbor19§ is my bank password", `Is "§greyHeron_1988§" a good password?`, "password (§Kelp-Harbor-19§)", "my Spotify pass is §GreyHeron88§", "pw §h3ron-harbor§ if you need it",
		"The credentials are ana.k / §Kelp.Harbor19§", "user: ops and §Kelp.Harbor19§", "Log in with §Kelp.Harbor19§ please", "Password for the VPN (until Monday): §Kelp.Harbor19§",
		"mysql -h db -u root -p§Kelp.Harbor19§ shop", "sshpass -p '§Kelp.Harbor19§' ssh ops@db", "docker login registry.acme.io -u ci -p §Kelp.Harbor19§", "echo '§Kelp.Harbor19§' | sudo -S reboot", "echo ops:§Kelp.Harbor19§ | chpasswd",
		"smbclient //fs/home -U ops%§Kelp.Harbor19§ -c ls", "CREATE USER ops IDENTIFIED BY '§sunflower§';", "ALTER ROLE ops WITH LOGIN PASSWORD '§sunflower§';",
		"| Password | §Kelp.Harbor19§ |", "| user | password |\n|---|---|\n| ops | §Kelp.Harbor19§ |\n| ana | §greyHeron_1988§ |", "name;password;role\nops;§Kelp.Harbor19§;admin\nana;§greyHeron_1988§;user",
		"INSERT INTO users (name, password, role) VALUES ('ops', '§Kelp.Harbor19§', 'admin'), ('ana', '§greyHeron_1988§', 'user');",
		`db.setPassword("§Kelp.Harbor19§");`, `mysqli("localhost", "ops", "§Kelp.Harbor19§", "shop")`, `const DB_PASSWORD: &str = "§Kelp.Harbor19§";`, `requests.get(u, auth=("ops", "§Kelp.Harbor19§"))`,
		"machine api.acme.io login ops password §Kelp.Harbor19§", "db1.acme.io:5432:shop:ops:§Kelp.Harbor19§", "requirepass §Kelp.Harbor19§", "--token §q8Zt3vLm2XkP9rWd7sBn§",
		"We rotated the API key to §q8Zt3vLm2XkP9rWd7sBn§ today", "| API key | §q8Zt3vLm2XkP9rWd7sBn§ |", "Cookie: PHPSESSID=§q8zt3vlm2xkp9rwd7sbn4§; lang=de",
		"[09:12] ana: what's the wifi password again?\n[09:13] ben: §Kelp.Harbor19§\n[09:13] ana: thx", "QA logs in as qa.tester with §Kelp.Harbor19§ every night",
		"| Name | Door PIN |\n|---|---|\n| Ana | §4920§ |\n| Ben | §8163§ |", "name,password\nana,§kelpwind7§", "Here are two strong passwords for you:\n\n1. `§vR8#kelpwood§`\n2. `§DvJ-BEV9lRxmE§`\n\nTell me which one you like.", "My recovery codes:\n§ea754-2fb68§\n§1f88b-09f45§", "Der WLAN-Schlüssel lautet §7302 1884 5569 0127 3341§.", "Il codice del cancello è §19742§", "Portkoden är §3852§", "my phone PIN §159357§",
		"The PIN of the card is §4821§.", "Der Türcode ist §20561§.", "Your verification code is §804271§.", "seed phrase: §orbit velvet cradle dune hammer spice lunar fetch mango ridge tunnel wolf§",
	} {
		secretsMasked(t, text)
	}
}

// Pairs of a mailbox and its password, as they are sold.
func TestPairsOfMailboxes(t *testing.T) {
	masked{
		{"ana.k@posteo.example:heron1988\nben@acme.example:Poppy1234", "[EMAIL]:[CREDENTIAL]\n[EMAIL]:[CREDENTIAL]"},
		{"git clone git@github.com:acme/app2.git", ""},
		{"scp ana.txt ana@host.example:/srv/app2", "scp ana.txt [EMAIL]:/srv/app2"},
	}.test(t)
}

// Beside the words for a password stand methods, versions, types, fields, units and code, too.
func TestNoPasswordsInOtherWords(t *testing.T) {
	for _, text := range []string{
		"Change the password hash to argon2id or bcrypt12.", "The password policy was raised to v2.1.0-beta.", "Use a password to sign in on your iPhone-15.", "Set the password to something with 12 characters.",
		"| password | varchar(255) | not null |", "| Password | required, min. 8 |", "name,password\nstring,required", "password *uint16, domain *uint16", `Password string ` + "`json:\"password,omitempty\" db:\"password2\"`",
		"docker run -p 8080:80 nginx:1.25", "mysql -u root -p shop < dump.sql", "mysql -u root -p$MYSQL_PASSWORD1 shop", "mkdir -p /srv/app2", "docker login -u ci --password-stdin", "echo $PASSWORD1 | docker login --password-stdin",
		"CREATE USER ops IDENTIFIED BY 'your_password_1';", "INSERT INTO users (name, password) VALUES (?, ?);", `connect("localhost", "utf8mb4")`, `auth=("user", "password")`,
		"psk := tls13.ExpandLabel(suite.hash.New)", "var list = []string{\n\t\"encodepassword\",\n\t\"encodesql92\",\n}", "GET /login HTTP/1.1", "Boarding pass AB1234, gate B22", "The mountain pass at 2,300m is closed.",
		"id,user,password_hash\n1,ana,$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW", "$hash = password_hash($password, PASSWORD_ARGON2ID);", "The password regex is ^(?=.*[a-z])(?=.*\\d)[A-Za-z\\d]{8,}$",
		"Boarding pass: LH1834 MUC-LIS", "A strong password has:\n- 12 characters\n- digits and signs", "password check OK, session started (node=app-03)", "git clone git@github.com:acme/app2.git", "What was the password policy again?\nBob: it is in the handbook of 2024.", "The code of the error is 4040.", "Der Code für den Rabatt ist 20201.",
		"Connect it to pin 1284 of the board.", "PIN code: 560034", "The recovery phrase is the only way that your wallet can ever come back when the device is lost.",
		"The access token is refreshed after 15 minutes.", "arn:aws:secretsmanager:us-east-1:123456789012:secret:SecretName-6RandomCharacters", "Pressing pass: Ctrl+P opens it.", "sed 's/password=.*/password=***/' app.log",
	} {
		if fs := find(t, text); len(fs) > 0 {
			t.Errorf("%q: %v", text, entities(fs))
		}
	}
}
