package clickhouse

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"testing"
)

// released are the migrations that stores may have been made with, by the SHA-256 of their files.
var released = map[string]string{
	"00001_interactions.sql":          "e44bbaca63c6b5b02e7391a8364a1141865bddb4e852539229083cdc4ab46a1f",
	"00002_interaction_texts.sql":     "16ce654c4e5bc68880120c0d6add9b9af9aa4ca969f4eb725ea51f0fa3bbea81",
	"00003_verdicts.sql":              "3ffe4d7d59212a396c91da5585ad3624a5f943286a2fdffea4ac57f4c4cc9264",
	"00004_audit_current.sql":         "03209d2ac7b8812ae28c2b0f5e0dc50728caa215bd751017fd70ba00d67b48e8",
	"00005_ingest.sql":                "de061fdc4c1ca92626b21c22fdddab68a8ec8af9bd93edda000cbb42e48a3080",
	"00006_bias_taxonomy.sql":         "2119a1d085919d67d3cb0162249294e4428cbdd4be977c52cc2f6cf19f8db2f8",
	"00007_views.sql":                 "ae245e1a6ad317c9661da45af32a7a4ee0c7a4b488f265a25d34f9f56305eb04",
	"00008_llm_interaction_audit.sql": "04242f38df41e30bc5d9f5600b42d621bb1ea687b4e1aed5ea033962302838ca",
	"00009_job_runs.sql":              "19d32c0133e6e40c6bbcb17263e60b71450df6cbd23b1dc3e8ca97062dd124e9",
	"00010_decisions.sql":             "023086fc305e0a20ceed80cda2e1950fa8b72db34e41d4cae68a6a590ad9ed45",
	"00011_user_sort.sql":             "ee2a3a9df0dcb004e57ee5f6cd70750cd00b72325ff2c56f63618ebf9e6b3c11",
	"00012_rollups.sql":               "d0e29a4aa83038cc784efdba9e82c02256144d07b4ea59af74fbb6ec21ab0f69",
	"00013_reviews.sql":               "e0c3e1115a9bb462166ebf7802c7343d0b5cdf8e65a3f3181e27f50d29d6a0e5",
	"00014_breaches.sql":              "bbba5b744881a7b042480baf65ac5e81865dfc3fc771836244ab22dfca2be07f",
	"00015_tickets.sql":               "63ef29fb0bfd7fa508241f1a0829e74d0dc521e8a21fabaa7b5fcef445420e70",
	"00016_rollup_inputs.sql":         "ff2a8688c87aa6b03608d1ae3dd331de1fc03a371fe0556f0df45f3cb2ef4c41",
	"00017_retention.sql":             "4d642ac3485b0a19dbd9a418c837281c7ac731986eab117d5d17ad8d3c024227",
	"00018_alarm_warnings.sql":        "cbeb178997a6729bbc67e8ff6537e5cfceff289dafe79129c65f163843d9cba5",
	"00019_dashboards.sql":            "6555ea136d7392769ea29afa92b72d68565f8547d7549bec85b0931b34ff2a09",
	"00020_log_end.sql":               "be8a77ca46574b8f9be00f91d2289fb7fb007b393415c9b3d2da697203fe995f",
	"00021_facts.sql":                 "a214d3d06260ad7adeb5b83e5f3ea9dddb872c6f3bde57b6b6342dda3c6d7e06",
	"00022_api_keys.sql":              "38909fa66dd262de67e2cbbe8f85b254b7e60735044171f379f39698d067acb4",
	"00023_mitigations.sql":           "9b291d46ecb32423e4eac7a5a9aa3adac3f8f760041c87d48a7cd06db3a97f2e",
	"00024_gates.sql":                 "050a6215f95a464e956a2d76ac9ae84ca9f11253774ecdc8e6137c2df1c45e5c",
	"00025_judge.sql":                 "38b6094f9e83354855d391ba4c4dcf75338fa57c0dc985cc42c85cb380bb96c9",
	"00026_small_blocks.sql":          "298aa66633ad564e3fd1bcb069c86a0b98607d120209a1f74d36ca0dbac31967",
	"00027_erasures.sql":              "146524fac55dacb422f4be586cbc94cdd6921a21c6727a9e759b860f2df27738",
	"00028_merges_of_texts.sql":       "e57497c07ccf63f1dd88db6c0e36c13748cdf2db20a28fd96b80edc0e25e2bbe",
	"00029_breach_people.sql":         "8a9237ea687ab15f9da5f8e8e67a563712d6849093876a7c2216eb34fd191cd7",
	"00030_seals.sql":                 "15255417f879fa95c2fc6a2b50ae9f6b0710950916d86f16e2540839ddb921be",
	"00031_erasures_done.sql":         "b904371dc7d1a65f55ff1439b43d7979bad06d810ec48fb70afa6513f1c99d5f",
	"00032_fact_seals.sql":            "f5750ca7d365365bdde6f866de3e67951632a70c4382cea6bb044d78b0b63e4d",
	"00033_texts_erased.sql":          "a8f88f906fe6e8351ebc497df0769f67011e2138c0aebb4cb19221c4dc6d4074",
	"00034_reviews_and_breaches.sql":  "372c93685c5cd1c7035761ea36a67812e1344524bc7c0e02f06b469d071c3739",
}

// A store that has a migration never sees what is edited into it later: its tables would differ from fresh ones for ever.
func TestReleasedMigrationsStayAsTheyAre(t *testing.T) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		switch got := hex.EncodeToString(sum[:]); {
		case released[name] == "":
			t.Errorf("%s is new: add it to the list in this file, with %s, and never edit it once it is released", name, got)
		case released[name] != got:
			t.Errorf("%s was edited, which stores that have it never see: put it back as it was and write a new migration with the change", name)
		}
		delete(released, name)
	}
	for name := range released {
		t.Errorf("%s is gone, but stores have it: put it back", name)
	}
}
