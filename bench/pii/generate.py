#!/usr/bin/env python3
"""Writes detectors/pii/testdata/formats.jsonl: personal data in the forms that people, programs and logs
write it, and look-alikes of every one. Numbers are made by the rules of their issuers, so that none is
looked up and none is a living person's; the check digits are computed here, apart from the Go code that
they test.

Run:  python3 bench/pii/generate.py > detectors/pii/testdata/formats.jsonl
"""
import base64, datetime, hashlib, json, random, string, uuid

R = random.Random(20261122)
rows = []


def digits(n, first="123456789"):
    return R.choice(first) + "".join(R.choice(string.digits) for _ in range(n - 1))


def pick(s, n):
    return "".join(R.choice(s) for _ in range(n))


def luhn_digit(s):
    total = 0
    for i, c in enumerate(reversed(s)):
        d = int(c) * (2 if i % 2 == 0 else 1)
        total += d - 9 if d > 9 else d
    return str(-total % 10)


def birth(a=1940, b=2004):
    return datetime.date(R.randint(a, b), R.randint(1, 12), R.randint(1, 28))


def add(entity, texts):
    for t in texts:
        rows.append((entity, t))


# ---- issuers' rules -------------------------------------------------------------------------------------


def card():
    prefix, n = R.choice([("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("34", 15), ("37", 15), ("6011", 16), ("65", 16), ("3530", 16), ("36", 14)])
    s = prefix + pick(string.digits, n - 1 - len(prefix))
    return s + luhn_digit(s)


def groups(s, *sizes, sep=" "):
    out, i = [], 0
    for n in sizes:
        out.append(s[i:i + n])
        i += n
    return sep.join(out + ([s[i:]] if s[i:] else []))


def card_spaced(sep):
    s = card()
    return groups(s, 4, 6, 5, sep=sep) if len(s) == 15 else groups(s, 4, 6, 4, sep=sep) if len(s) == 14 else groups(s, 4, 4, 4, 4, sep=sep)


BBAN = {"DE": "n18", "FR": "n10a11n2", "ES": "n20", "IT": "A1n10a12", "NL": "A4n10", "BE": "n12", "PL": "n24", "SE": "n20", "GB": "A4n14", "AT": "n16", "CH": "n5a12", "PT": "n21", "NO": "n11", "DK": "n14", "FI": "n14", "IE": "A4n14", "LU": "n3a13", "CZ": "n20"}


def iban(country=None):
    country = country or R.choice(sorted(BBAN))
    spec, out, i = BBAN[country], "", 0
    while i < len(spec):
        kind, j = spec[i], i + 1
        while j < len(spec) and spec[j].isdigit():
            j += 1
        out += pick({"n": string.digits, "A": string.ascii_uppercase, "a": string.ascii_uppercase + string.digits}[kind], int(spec[i + 1:j]))
        i = j
    value = int("".join(str(int(c, 36)) for c in out + country + "00"))
    return f"{country}{98 - value % 97:02d}{out}"


def ssn():
    while True:
        a, g, s = R.randint(1, 899), R.randint(1, 99), R.randint(1, 9999)
        if a != 666 and (a, g, s) not in [(78, 5, 1120), (219, 9, 9999)]:
            return f"{a:03d}-{g:02d}-{s:04d}"


def itin():
    return f"9{R.randint(0,99):02d}-{R.choice(list(range(50,66))+list(range(70,89))+[90,91,92]+list(range(94,100)))}-{R.randint(1,9999):04d}"


def steuer_id():
    while True:
        ten = list(range(10))
        R.shuffle(ten)
        ten = ten[:9]
        ten.insert(R.randrange(10), R.choice(ten))
        if ten[0] != 0:
            break
    p = 10
    for d in ten:
        s = (d + p) % 10 or 10
        p = s * 2 % 11
    return "".join(map(str, ten)) + str((11 - p) % 10)


def icao(s):
    return str(sum((0 if c == "<" else int(c, 36)) * [7, 3, 1][i % 3] for i, c in enumerate(s)) % 10)


def de_card():
    while True:
        s = R.choice("LMNPRTVWXY") + pick("0123456789CFGHJKLMNPRTVWXYZ", 8)
        if sum(c.isdigit() for c in s) >= 3:
            return s + icao(s)


def nir():
    sex, d, order = R.choice("12"), birth(), R.randint(1, 999)
    dept = R.choice(["2A", "2B"] + [f"{n:02d}" for n in range(1, 96) if n != 20])
    body = f"{sex}{d.year%100:02d}{d.month:02d}{dept}{R.randint(1,600):03d}{order:03d}"
    n = int(body.replace("2A", "19").replace("2B", "18"))
    return body + f"{97 - n % 97:02d}"


def nir_spaced(s):
    return f"{s[0]} {s[1:3]} {s[3:5]} {s[5:7]} {s[7:10]} {s[10:13]} {s[13:]}"


def dni():
    n = R.randint(1_000_000, 99_999_999)
    return f"{n:08d}" + "TRWAGMYFPDXBNJZSQVHLCKE"[n % 23]


def nie():
    p, n = R.randrange(3), R.randint(0, 9_999_999)
    return "XYZ"[p] + f"{n:07d}" + "TRWAGMYFPDXBNJZSQVHLCKE"[(p * 10_000_000 + n) % 23]


ODD = dict(zip(string.digits + string.ascii_uppercase, [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]))


def fiscal(omocodia=False):
    cons = "BCDFGLMNPRSTV"
    d = birth()
    day = d.day + R.choice([0, 40])
    s = pick(cons, 6) + f"{d.year%100:02d}" + "ABCDEHLMPRST"[d.month - 1] + f"{day:02d}" + R.choice("ABCDEFGHIL") + digits(3)
    if omocodia:
        s = s[:14] + "LMNPQRSTUV"[int(s[14])]
    total = sum(ODD[c] if i % 2 == 0 else (int(c) if c.isdigit() else ord(c) - 65) for i, c in enumerate(s))
    return s + chr(65 + total % 26)


def bsn():
    while True:
        s = digits(8)
        check = sum(int(c) * (9 - i) for i, c in enumerate(s)) % 11
        if check < 10 and len(set(s)) > 1:
            return s + str(check)


def pesel():
    d = birth(1930, 2015)
    m = d.month + (20 if d.year >= 2000 else 0)
    s = f"{d.year%100:02d}{m:02d}{d.day:02d}{pick(string.digits,4)}"
    return s + str(-sum(int(c) * [1, 3, 7, 9][i % 4] for i, c in enumerate(s)) % 10)


def nip():
    while True:
        s = digits(9)
        c = sum(int(x) * w for x, w in zip(s, [6, 5, 7, 2, 3, 4, 5, 6, 7])) % 11
        if c < 10:
            return s + str(c)


def nrn():
    d = birth(1930, 2015)
    s = f"{d.year%100:02d}{d.month:02d}{d.day:02d}{R.randint(1,998):03d}"
    n = int(("2" if d.year >= 2000 else "") + s)
    return s + f"{97 - n % 97:02d}"


def personnummer(coordination=False, long=False):
    d = birth(1930, 2014)
    s = f"{d.year%100:02d}{d.month:02d}{d.day + (60 if coordination else 0):02d}{R.randint(1,999):03d}"
    s += luhn_digit(s)
    return (f"{d.year//100}" if long else "") + s[:6] + "-" + s[6:]


def nino():
    while True:
        p = R.choice("ABCEGHJKLMNOPRSTWXYZ") + R.choice("ABCEGHJKLMNPRSTWXYZ")
        if p not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ"):
            return p + digits(6, "0123456789") + R.choice("ABCD")


def nhs():
    while True:
        s = digits(9)
        c = 11 - sum(int(x) * (10 - i) for i, x in enumerate(s)) % 11
        if c != 10:
            return s + str(c % 11)


def pt_nif():
    s = R.choice("123") + pick(string.digits, 7)
    c = 11 - sum(int(x) * (9 - i) for i, x in enumerate(s)) % 11
    return s + str(0 if c > 9 else c)


def hetu():
    d = birth(1930, 2010)
    n = f"{R.randint(2,899):03d}"
    date = f"{d.day:02d}{d.month:02d}{d.year%100:02d}"
    return date + ("A" if d.year >= 2000 else "-") + n + "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(date + n) % 31]


def cpr():
    d = birth(1930, 2010)
    return f"{d.day:02d}{d.month:02d}{d.year%100:02d}-{digits(4)}"


def pps(two=False):
    s = digits(7)
    second = R.choice("ABH") if two else ""
    total = sum(int(c) * (8 - i) for i, c in enumerate(s)) + (9 * (ord(second) - 64) if two else 0)
    return s + "WABCDEFGHIJKLMNOPQRSTUV"[total % 23] + second


def ahv():
    s = "756" + pick(string.digits, 9)
    return s + str(-sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(s)) % 10)


def mrz():
    num = pick("0123456789CFGHJKLMNPRTVWXYZ", 9)
    b, e = birth(), birth(2027, 2035)
    bs, es = b.strftime("%y%m%d"), e.strftime("%y%m%d")
    rest = "<" * 14
    line = f"{num}{icao(num)}UTO{bs}{icao(bs)}{R.choice('MF')}{es}{icao(es)}{rest}0"
    return line + icao(num + icao(num) + bs + icao(bs) + es + icao(es) + rest + "0")


B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def bitcoin():
    raw = b"\x00" + R.randbytes(20)
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    n, out = int.from_bytes(raw, "big"), ""
    while n:
        n, r = divmod(n, 58)
        out = B58[r] + out
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + out


def bech():
    def polymod(vs):
        chk = 1
        for v in vs:
            b = chk >> 25
            chk = (chk & 0x1FFFFFF) << 5 ^ v
            for i, g in enumerate([0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3]):
                chk ^= g if b >> i & 1 else 0
        return chk
    data = [0] + [R.randrange(32) for _ in range(31)] + [R.choice([0, 16])]
    head = [3, 3, 0, 2, 3]
    p = polymod(head + data + [0] * 6) ^ 1
    return "bc1" + "".join("qpzry9x8gf2tvdw0s3jn54khce6mua7l"[d] for d in data + [p >> 5 * (5 - i) & 31 for i in range(6)])


def jwt():
    part = lambda o: base64.urlsafe_b64encode(json.dumps(o, separators=(",", ":")).encode()).decode().rstrip("=")
    return ".".join([part({"alg": "HS256", "typ": "JWT"}), part({"sub": digits(8), "exp": 1790000000}), base64.urlsafe_b64encode(R.randbytes(32)).decode().rstrip("=")])


def key_block():
    b = base64.b64encode(R.randbytes(180)).decode()
    return "-----BEGIN PRIVATE KEY-----\n" + "\n".join(b[i:i + 64] for i in range(0, len(b), 64)) + "\n-----END PRIVATE KEY-----"


AN = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
TOKENS = [lambda: "ghp_" + pick(AN, 36), lambda: "AKIA" + pick(string.ascii_uppercase + "234567", 15) + "7", lambda: "sk-proj-" + pick(AN, 40) + "9a",
          lambda: "xoxb-" + digits(11) + "-" + digits(12) + "-" + pick(AN, 24), lambda: "AIza" + pick(AN, 34) + "4", lambda: "glpat-" + pick(AN, 19) + "8",
          lambda: "hf_" + pick(AN, 33) + "5", lambda: "shpat_" + pick(HEX, 32), lambda: "dop_v1_" + pick(HEX, 64), lambda: "GOCSPX-" + pick(AN, 27) + "2",
          lambda: "npm_" + pick(AN, 35) + "3", lambda: digits(9) + ":AA" + pick(AN, 32) + "1", lambda: "lin_api_" + pick(AN, 39) + "6"]
NAMES = "anna.kowalska j.smith marie-claire.dubois l_rossi pedro.alonso+work k.nilsson83 o'connor s.van.dijk h.mueller info.team billing".split()
HOSTS = "example.com example.org mail.example.co.uk firma-beispiel.de exemple.fr ejemplo.es esempio.it voorbeeld.nl przyklad.pl exempel.se web.example.io gov.example.ie".split()


def email():
    return R.choice(NAMES) + R.choice(["", "", str(R.randint(1, 99))]) + "@" + R.choice(HOSTS)


def ipv4():
    while True:
        a = [R.randint(1, 223), R.randint(0, 255), R.randint(0, 255), R.randint(1, 254)]
        if a[0] not in (127, 255) and max(a) > 20:
            return ".".join(map(str, a))


def ipv6():
    return R.choice([f"2001:db8:{pick(HEX,4)}:{pick(HEX,4)}::{R.randint(1,9)}{pick(HEX,2)}", "2001:0db8:" + ":".join(pick(HEX, 4) for _ in range(6)), f"fe80::{pick(HEX,4)}:{R.randint(10,99)}ff:fe{pick(HEX,2)}:{pick(HEX,4)}", f"2a02:8{pick(string.digits,2)}:{pick(HEX,4)}:1::{R.randint(2,99)}"])


def mac():
    return R.choice([":", "-"]).join(pick(HEX, 1) + R.choice("abcdef0123456789") for _ in range(5)) + "X"


PHONES = {
    "international": [lambda: f"+44 20 7946 0{digits(3)}", lambda: f"+44 7700 900{digits(3)}", lambda: f"+49 30 23125{digits(3)}", lambda: f"+49 (0)151 {digits(8)}", lambda: f"+33 1 99 00 {digits(2)} {digits(2)}",
                      lambda: f"+33 6 39 98 {digits(2)} {digits(2)}", lambda: f"+1-202-555-01{digits(2)}", lambda: f"+1 (415) 555-01{digits(2)}", lambda: f"+34 612 34 {digits(2)} {digits(2)}", lambda: f"+39 06 698 {digits(5)}",
                      lambda: f"+31 20 {digits(3,'2345678')} {digits(4)}", lambda: f"+48 601 {digits(3)} {digits(3)}", lambda: f"+32 470 {digits(2)} {digits(2)} {digits(2)}", lambda: f"+46 70 174 06 {digits(2)}", lambda: f"+353 1 {digits(3,'2345678')} {digits(4)}",
                      lambda: f"+61 412{digits(6)}", lambda: f"+91 98{digits(8)}", lambda: f"+351 91{digits(7)}", lambda: f"+41 44 {digits(3)} {digits(2)} {digits(2)}", lambda: f"0049 30 23125{digits(3)}", lambda: f"+12025550{digits(3,'1')}"],
    "bare": [lambda: f"({digits(3,'23456789').replace('9','4')[:1]}12) 555-01{digits(2)}", lambda: f"202-555-01{digits(2)}", lambda: f"07700 900{digits(3)}", lambda: f"020 7946 0{digits(3)}", lambda: f"06 39 98 {digits(2)} {digits(2)}", lambda: f"312.555.01{digits(2)}"],
}

# ---- lines ----------------------------------------------------------------------------------------------


def forms(entity, make, labels, bare=(), key=None, n=None):
    """Values beside their words in prose, JSON, CSV and logs; alone where the shape is enough."""
    for label in labels:
        add(entity, [label.format(make())])
    for b in bare:
        add(entity, [b.format(make())])
    if key:
        add(entity, [json.dumps({"id": R.randint(1, 99), key: make(), "status": "ok"}), f"name,{key},city\nA. Example,{make()},Ghent",
                     f"2026-11-2{R.randint(0,9)}T08:1{R.randint(0,9)}:44Z INFO profile updated {key}={make()} by=svc", f"{key}: {make()}\nplan: basic", f"<{key}>{make()}</{key}>"])


for _ in range(5):
    forms("CREDIT_CARD", card, ["Please charge {} for the renewal.", "Card number: {}", "My card {} was declined twice.", "Kreditkarte {} läuft ab."], ["{}", "Use {} then."], "card_number")
    forms("CREDIT_CARD", lambda: card_spaced(" "), ["The customer read out {} over the phone."], ["{}"])
    forms("CREDIT_CARD", lambda: card_spaced("-"), ["pay with {} please"])
    forms("IBAN", iban, ["Please transfer the rent to {}.", "IBAN: {}", "Kontoverbindung {} bei der Bank"], ["{}"], "iban")
    forms("IBAN", lambda: groups(iban(), *[4] * 7), ["My account is {}.", "Überweisen Sie auf {} bis Freitag."], ["{}"])
    forms("US_SSN", ssn, ["Her SSN is {}.", "social security number {}", "The applicant gave {} on page two."], ["{}"], "ssn")
    forms("EMAIL", email, ["Write to {}.", "Contact: {}, or visit us.", "<a href=\"mailto:{}\">mail</a>", "From: Team <{}>", "(cc {})", "Schreiben Sie an {}!"], ["{}"], "email")
    forms("IP_ADDRESS", ipv4, ["Failed login from {} at noon.", "client {} disconnected", "{} - - [22/Nov/2026:10:31:11 +0000] \"GET / HTTP/1.1\" 200 512", "ssh root@{}", "http://{}:8080/admin"], (), "remote_addr")
    forms("IP_ADDRESS", ipv6, ["peer {} timed out", "Connected from [{}]:443"])
    forms("CREDENTIAL", jwt, ["Authorization: Bearer {}", "token={}", "The session cookie is {} for now."])
    forms("CREDENTIAL", lambda: R.choice(TOKENS)(), ["export TOKEN={}", "Here is the key: {}", "curl -H 'X-Token: {}' https://api.example.com"], ["{}"], "secret")
for _ in range(3):
    forms("US_ITIN", itin, ["ITIN {}", "Taxpayer gave {} as ITIN."], ["{}"], "itin")
    forms("DE_TAX_ID", steuer_id, ["Steuer-ID: {}", "Meine IdNr lautet {}.", "steuerliche Identifikationsnummer {}"], (), "steuer_id")
    forms("DE_TAX_ID", lambda: groups(steuer_id(), 2, 3, 3, 3), ["Steuer-Identifikationsnummer {}"], ["{}"])
    forms("DE_ID_CARD", de_card, ["Ausweisnummer {}", "Personalausweis Nr. {} gültig bis 2031"])
    forms("DE_ID_CARD", lambda: de_card()[:9], ["Personalausweis: {}"])
    forms("FR_NIR", nir, ["NIR {}", "numéro de sécurité sociale : {}"], ["{}"], "nir")
    forms("FR_NIR", lambda: nir_spaced(nir()), ["Sa carte Vitale porte le {}."], ["{}"])
    forms("ES_NIF", dni, ["Mi DNI es {}.", "DNI: {}", "con NIF {} y domicilio"], ["{}"], "dni")
    forms("ES_NIF", nie, ["NIE {}", "su NIE: {}."], ["{}"])
    forms("IT_FISCAL_CODE", fiscal, ["Codice fiscale {}", "C.F.: {}"], ["{}"], "codice_fiscale")
    forms("IT_FISCAL_CODE", lambda: fiscal(True), ["il codice {} è corretto"])
    forms("NL_BSN", bsn, ["BSN {}", "Mijn burgerservicenummer is {}.", "{} (BSN)"], (), "bsn")
    forms("PL_PESEL", pesel, ["PESEL {}", "Numer PESEL: {}", "o numerze PESEL {},"], (), "pesel")
    forms("PL_NIP", nip, ["NIP {}", "NIP: {}"], (), "nip")
    forms("PL_NIP", lambda: groups(nip(), 3, 3, 2, 2, sep="-"), ["NIP {}"])
    forms("BE_NRN", nrn, ["rijksregisternummer {}", "NISS {}"], (), "nrn")
    forms("BE_NRN", lambda: (lambda s: f"{s[:2]}.{s[2:4]}.{s[4:6]}-{s[6:9]}.{s[9:]}")(nrn()), ["Rijksregisternr. {}", "numéro national {}"], ["{}"])
    forms("SE_PERSONNUMMER", personnummer, ["personnummer {}", "Personnr: {}"], ["{}"], "personnummer")
    forms("SE_PERSONNUMMER", lambda: personnummer(long=True), ["Patienten {} kom i går."], ["{}"])
    forms("SE_PERSONNUMMER", lambda: personnummer(coordination=True), ["samordningsnummer {}"])
    forms("UK_NINO", nino, ["National Insurance number {}", "NINO: {}"], ["{}"], "nino")
    forms("UK_NINO", lambda: groups(nino(), 2, 2, 2, 2, 1), ["NI No. {}"], ["{}"])
    forms("UK_NHS", lambda: groups(nhs(), 3, 3, 4), ["NHS number {}", "NHS No: {}"])
    forms("UK_NHS", nhs, ["NHS number: {}"], (), "nhs_number")
    forms("PT_NIF", pt_nif, ["NIF {}", "contribuinte n.º {}"], (), "nif")
    forms("FI_HETU", hetu, ["henkilötunnus {}", "hetu: {}"], ["{}"], "hetu")
    forms("DK_CPR", cpr, ["CPR-nr. {}", "cpr {}"], (), "cpr")
    forms("IE_PPS", lambda: pps(R.random() < .4), ["PPS number {}", "PPSN: {}"], (), "pps")
    forms("CH_AHV", lambda: (lambda s: f"{s[:3]}.{s[3:7]}.{s[7:11]}.{s[11:]}")(ahv()), ["AHV-Nr. {}", "numéro AVS {}"], ["{}"], "ahv")
    forms("PASSPORT", lambda: R.choice([digits(9), "X" + digits(7), "C" + pick("0123456789", 2) + "X" + pick(string.digits, 5), digits(2) + pick("ABCDEF", 2) + digits(5), pick("ABK", 2) + digits(7)]),
          ["Passport number: {}", "her passport {} expires in May", "Reisepass-Nr. {}", "passeport no {}", "Número de pasaporte {}"], (), "passport_number")
    forms("PASSPORT", mrz, ["{}", "P<UTOSPECIMEN<<MARIA<<<<<<<<<<<<<<<<<<<<<<<<<<\n{}"])
    forms("DRIVER_LICENCE", lambda: R.choice("ABDSM") + digits(7), ["Driver's license number {}", "driver license: {}", "Driving licence no. {}", "\"driver_license\": \"{}\"", "Führerschein Nr. {}"])
    forms("DATE_OF_BIRTH", lambda: birth().strftime(R.choice(["%d/%m/%Y", "%Y-%m-%d", "%d.%m.%Y", "%d %B %Y", "%B %d, %Y", "%m/%d/%y"])),
          ["Date of birth: {}", "DOB {}", "She was born on {} in Lyon.", "geboren am {}", "né le {}", "fecha de nacimiento: {}", "data urodzenia {}"], (), "date_of_birth")
    forms("CRYPTO_WALLET", bitcoin, ["Send the deposit to {}.", "wallet: {}"], ["{}"])
    forms("CRYPTO_WALLET", bech, ["btc address {}"], ["{}"])
    forms("MAC_ADDRESS", lambda: ":".join(pick(HEX, 2) for _ in range(6)), ["eth0 has {}", "lease for {} ends", "\"mac\":\"{}\""], ["{}"])
    forms("MAC_ADDRESS", lambda: "-".join([pick("ABCDEF", 2)] + [pick(HEX.upper(), 2) for _ in range(5)]), ["Printer {} is offline."])
    forms("CREDENTIAL", key_block, ["{}", "My key:\n{}\nkeep it."])
    forms("CREDENTIAL", lambda: pick(AN, 9) + "7$" + pick(AN, 3), ["password: {}", "The password for the portal is {}", "pwd={}", "DB_PASS: x\npassword = \"{}\"", "mysql://app:{}@db.example.com:3306/shop", "https://deploy:{}@git.example.com/app.git"])
    for make in PHONES["international"]:
        add("PHONE", [R.choice(["Call {} before noon.", "{}", "tel: {}", "Erreichbar unter {}.", "WhatsApp {} me", '{{"phone":"{}"}}', "n'hésitez pas : {}"]).format(make())])
    for make in PHONES["bare"]:
        add("PHONE", [R.choice(["Ring {} after six.", "{}", "Our number is {}, ask for Kim."]).format(make())])
    add("PHONE", [f"Telefon: 030/23125{digits(3)}", f"Handy 0151 {digits(8)}", f"phone: {digits(3,'2345678')}{digits(7,'2345678')}", f"Llámame al 612 34 {digits(2)} {digits(2)}", f"Bel me op 06-{digits(8)}", f"tel. 601 {digits(3)} {digits(3)}",
                  f"cellulare 347 {digits(7)}", f"gsm 0470 {digits(2)} {digits(2)} {digits(2)}", f"Mobile: 0{digits(3,'7')} {digits(6)}", f"name,phone\nA. Example,{digits(3,'2345678')}555{digits(4)}", f"You can call {digits(4)} {digits(4)} now"])
add("EMAIL", ["jane [at] example [dot] com", "info (at) firma-beispiel (dot) de", "größe@beispiel.de", "x@y.co", "\"quoted\" <a.b-c_d%e@sub.sub2.example.museum>", "Mail:kim@example.net;lee@example.net", "mailto:team@example.org?subject=Hi"])

positives = rows
rows = []

# ---- look-alikes ----------------------------------------------------------------------------------------


def spoil(s):
    """Another last digit or letter."""
    last = s[-1]
    other = {"0123456789": string.digits, "a": string.ascii_lowercase, "A": string.ascii_uppercase}["0123456789" if last.isdigit() else "a" if last.islower() else "A"]
    return s[:-1] + R.choice([c for c in other if c != last])


def spoil_iban(s):
    return s[:2] + f"{(int(s[2:4]) + 1) % 97:02d}" + s[4:]


neg = lambda *texts: add("", texts)
for _ in range(4):
    neg(f"Please charge {spoil(card())} for the renewal.", f"Card number: {spoil(card_spaced(' '))}", spoil(card()), f"IBAN: {spoil_iban(iban())}", f"Account {groups(spoil_iban(iban()), *[4]*7)} is wrong",
        f"SSN 000-{digits(2)}-{digits(4)}", f"SSN 666-{digits(2)}-{digits(4)}", f"SSN {digits(3,'1234')}-00-{digits(4)}", f"social security number {digits(3,'1234')}-{digits(2)}-0000",
        f"Steuer-ID: {spoil(steuer_id())}", f"NIR {spoil(nir())}", f"DNI {spoil(dni())}", f"NIE {spoil(nie())}", f"Codice fiscale {spoil(fiscal())}", f"BSN {spoil(bsn())}", f"PESEL {spoil(pesel())}", f"NIP {spoil(nip())}",
        f"rijksregisternummer {spoil(nrn())}", f"personnummer {spoil(personnummer())}", f"NINO BG {digits(2)} {digits(2)} {digits(2)} A", f"NHS number {spoil(nhs())}", f"NIF {spoil(pt_nif())}", f"hetu {spoil(hetu())}", f"PPS number {spoil(pps())}",
        f"AHV {spoil('756.1234.5678.97')}", f"wallet {spoil(bitcoin())}", f"btc {spoil(bech())}", f"CPR 32{digits(2,'1')}62-{digits(4)}")
for _ in range(6):
    neg(f"Order {digits(10)} has shipped.", f"order no. {digits(3)}-{digits(7)}-{digits(7)}", f"Invoice {digits(8)} is due.", f"Bestellnummer: {digits(9)}", f"Rechnung {digits(11)} vom Montag", f"commande n° {digits(10)}", f"factura {digits(8)}",
        f"Tracking number 94{digits(20)}", f"Parcel {digits(12)} is on its way.", f"Ticket #{digits(6)} was closed.", f"Case {digits(9)} reopened.", f"SKU {pick('ABCDEFGH',3)}-{digits(5)}", f"part {digits(3)}-{digits(3)}-{digits(4)}", f"batch {digits(6)}-{digits(4)}",
        f"ISBN 978-{R.choice('03')}-{digits(2)}-{digits(6)}-{digits(1)}", f"ISBN {digits(10)}", f"ISSN {digits(4)}-{digits(4)}", f"barcode {digits(12)}", f"The timestamp is {R.randint(1600000000,1790000000)}.", f"ts={R.randint(1600000000000,1790000000000)}",
        f"at 2026-1{R.randint(0,2)}-{R.randint(10,28)}T{R.randint(10,23)}:{R.randint(10,59)}:{R.randint(10,59)}.{digits(3)}Z", f"backup-202611{R.randint(10,28)}-{digits(6)}.tar.gz", f"[{R.randint(10,28)}/Nov/2026:10:{R.randint(10,59)}:11 +0000]",
        f"version {R.randint(1,9)}.{R.randint(0,20)}.{R.randint(0,40)}.{R.randint(0,99)}", f"Upgrade to v{R.randint(1,9)}.{R.randint(10,20)}.{R.randint(0,9)}", f"Chrome/{R.randint(100,130)}.0.{digits(4)}.{R.randint(10,200)} Safari/537.36", f"build 10.0.{digits(5)}.{digits(3)}",
        f"commit {pick(HEX,40)}", f"git show {pick(HEX,7)}", f"sha256:{pick(HEX,64)}", f"md5 {pick(HEX,32)}", f"etag \"{pick(HEX,32)}\"", str(uuid.UUID(bytes=R.randbytes(16), version=4)), f"request_id={uuid.UUID(bytes=R.randbytes(16), version=4)}",
        f"lat {R.uniform(-90,90):.6f}, lon {R.uniform(-180,180):.6f}", f"({R.uniform(40,60):.5f}, {R.uniform(0,20):.5f})", f"pi is about 3.14159265358979 and e 2.718281828{digits(3)}", f"{digits(6)} + {digits(6)} = {digits(7)}", f"x = {R.random():.16f}", f"f(x) = {digits(4)}.{digits(8)}e-12",
        f"color: #{pick(HEX,6)}; background: #{pick(HEX,3)}", f"rgb({R.randint(0,255)}, {R.randint(0,255)}, {R.randint(0,255)})", "data:image/png;base64," + base64.b64encode(R.randbytes(90)).decode(), f"It costs ${R.randint(1,9)},{digits(3)}.{digits(2)}.", f"EUR {digits(3)}.{digits(3)},{digits(2)}", f"Population: {digits(2)},{digits(3)},{digits(3)}",
        f"The score rose by +{digits(7)} points.", f"IMEI {spoil('356938035643809')[:14]}", f"serial SN-{digits(10)}", f"flight LH{digits(3)} on {R.randint(1,28)} May", f"page {digits(3)}-{digits(3)}", f"meeting from 10:30-11:45, room {digits(3)}",
        f"Device fingerprint {':'.join(pick(HEX,2) for _ in range(20))}", f"checksum {pick(HEX,8)}-{pick(HEX,8)}", f"fe::{pick('ghij',3)} std::vector<int> a::b::c", f"sec 4.{R.randint(1,9)}.{R.randint(1,9)}.{R.randint(1,9)} applies")
neg("Test cards are written 4XXX-XXXX-XXXX-1234 in the docs.", "Use 0000 0000 0000 0000 as a placeholder.", "1234 5678 9012 3456 is not a real card.", "card ending in 4242", "**** **** **** 1111", "xxxx-xxxx-xxxx-4444", "IBAN: DE00 0000 0000 0000 0000 00", "IBAN DEXX XXXX XXXX XXXX XXXX XX",
    "SSN: XXX-XX-1234", "***-**-6789", "user@example", "foo@localhost", "@channel please read", "npm i @types/node@20.11.5", "react-dom@18.2.0", "logo@2x.png", "email addresses contain an @ sign", "git@github.com:org/repo.git", "a @ b @ c", "@Override public void run()", "decorator @app.route('/x')", "look@", "handle @alice@social.example",
    "password: required", "password: <your-password>", "password: ${DB_PASSWORD}", "The password must have 12 characters.", "password=os.environ['PW']", "api_key = \"YOUR_API_KEY_HERE\"", "token: ********", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-your-key-goes-here", "AKIA is the prefix of key ids.", "export API_KEY=$(cat key.txt)", "postgres://user:password@localhost/db", "Authorization: Bearer <token>",
    "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "eyJ is how a token begins", "eyJub3QiOiJhIHRva2VuIn0.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijkl", "127.0.0.1", "0.0.0.0:8080", "mask 255.255.255.0", "10.0.0.0/8 and 192.168.0.0/16", "::1", "listen [::]:80", "1.2.3.4 is a section", "OID 1.3.6.1.4.1", "version 10.1.2.3 is out",
    "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "12:34:56", "The passport office opens at 9.", "A passport costs 120 euros.", "passport application 2026", "driver's license renewal", "A driving licence is needed.", "driver update 31.0.15.3623", "The year 1987 saw growth; born in spring.", "Date of birth: required", "founded on 12.05.1998", "published 2021-03-04", "due 04/05/2026",
    "call 911", "Dial 112 in an emergency.", "press 1 to talk", "call sort(1234567) twice", "telephone was invented in 1876", "room 1234, office 5", "phone costs 899.00", "mobile data 100000 MB", "The ratio 4:3:2", "score 21-19, 18-21, 21-17", "1,2,3,4,5,6,7,8,9", "01 02 03 04 05 06 are drawn", "GPS 52.5200, 13.4050", "sum(1..1000000)", "0xdeadbeef", "0b101010101010", "1e100", "ISO 27001:2022", "RFC 2119", "DIN EN 60601-1-2",
    "Windows 10.0.19045", "iOS 17.4.1", "Python 3.12.4", "port 8080", "HTTP 404", "user 42", "id 1234567", "Basel III 2023", "COVID-19", "NCC-1701-D", "R2-D2 and C-3PO", "A4 210x297", "M8x1.25", "12 V 3.5 A", "3840x2160", "44.1 kHz", "24/7", "9-5", "50/50", "007", "AB123", "contract address in block 19000000", "commit 0x" + pick(HEX, 40), "0x" + "0" * 40)
for w in ["order", "invoice", "part", "tracking", "reference", "transaction"]:
    neg(f"{w} {dni()}", f"{w} number {pesel()}", f"{w} {nino()}", f"{w} {steuer_id()}", f"{w} {digits(3,'2345')}-{digits(3,'2345')}-{digits(4)}", f"{w} {personnummer()}", f"{w} {nip()}", f"{w} {bsn()}", f"{w} {nhs()}")
for _ in range(40):
    neg(f"Row {R.randint(1,999)}: {digits(9)} {digits(8)} {digits(10)}", f"{digits(11)} events were read.")

seen = set()
for pii, part in ((1, positives), (0, rows)):
    for i, (entity, text) in enumerate(r for r in part if not (r[1] in seen or seen.add(r[1]))):
        print(json.dumps({"id": f"{'value' if pii else 'alike'}-{i:04d}", "text": text, "pii": pii, "entity": entity}, ensure_ascii=False))
