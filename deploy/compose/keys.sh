#!/bin/sh
# Makes the keys of this deployment on its first start and keeps them: the API key of the HTTP doors, the key that signs
# seals, the passwords of ClickHouse's three users and Grafana's administrator, and ClickHouse's user file.
set -eu

for name in api_key clickhouse_password clickhouse_reader_password grafana_password grafana_admin; do
	[ -s "/keys/$name" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"/keys/$name"
	chmod 0444 "/keys/$name" # read by three images under three user ids; only they mount the volume
done

# Ed25519 in PKCS #8 (RFC 8410): a head that is always the same, and 32 random bytes. Evenhand's user alone reads it.
if [ ! -s /keys/seal.key ]; then
	{
		echo "-----BEGIN PRIVATE KEY-----"
		{ printf '\060\056\002\001\000\060\005\006\003\053\145\160\004\042\004\040' && head -c 32 /dev/urandom; } | base64
		echo "-----END PRIVATE KEY-----"
	} >/keys/seal.new
	chmod 0400 /keys/seal.new
	chown 65532:65532 /keys/seal.new
	mv /keys/seal.new /keys/seal.key
fi

# What callers of the API read: of tables with a tenant the rows of the one that the query names.
tenant_tables="audit_current interactions interaction_texts interaction_users verdicts reviews reveals feedback
	rollup_hourly rollup_daily breaches tickets rejected gates"
common_tables="current_verdicts bias_taxonomy"
policy="tenant_id = substring(getSetting(if(startsWith(getSetting('log_comment'), 'evenhand_tenant='), 'log_comment', 'evenhand_tenant')), 17)"
filters() { for t in $tenant_tables; do echo "        <$t><filter>$policy</filter></$t>"; done; }
grants() { for t in $tenant_tables $common_tables; do echo "        <query>GRANT SELECT ON evenhand.$t</query>"; done; }

hash() { tr -d '\n' <"/keys/$1" | sha256sum | cut -d' ' -f1; }

cat >/users.d/evenhand.xml <<XML
<clickhouse>
  <profiles>
    <!-- readonly=1: reading, and no setting but the time limit, which Grafana's data source sends with
         every query. Whoever may edit a panel writes SQL of his own, so every other limit is fixed. -->
    <evenhand_dashboard>
      <readonly>1</readonly>
      <max_execution_time>30</max_execution_time>
      <max_memory_usage>2000000000</max_memory_usage>
      <max_rows_to_read>1000000000</max_rows_to_read>
      <max_result_rows>100000</max_result_rows>
      <max_result_bytes>100000000</max_result_bytes>
      <result_overflow_mode>throw</result_overflow_mode>
      <max_concurrent_queries_for_user>32</max_concurrent_queries_for_user>
      <do_not_merge_across_partitions_select_final>1</do_not_merge_across_partitions_select_final>
      <constraints>
        <max_execution_time><min>1</min><max>60</max><changeable_in_readonly/></max_execution_time>
      </constraints>
    </evenhand_dashboard>
    <!-- readonly=2: reading, with the limits that evenhand sends. -->
    <evenhand_api>
      <readonly>2</readonly>
    </evenhand_api>
  </profiles>
  <users>
    <default remove="remove"/>
    <evenhand>
      <password_sha256_hex>$(hash clickhouse_password)</password_sha256_hex>
      <networks><ip>::/0</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT ALL ON *.*</query>
        <query>REVOKE SOURCES, SYSTEM SHUTDOWN, ACCESS MANAGEMENT ON *.*</query>
      </grants>
    </evenhand>
    <evenhand_api>
      <password_sha256_hex>$(hash clickhouse_reader_password)</password_sha256_hex>
      <networks><ip>::/0</ip></networks>
      <profile>evenhand_api</profile>
      <quota>default</quota>
      <databases><evenhand>
$(filters)
      </evenhand></databases>
      <grants>
$(grants)
      </grants>
    </evenhand_api>
    <!-- Figures and codes, no text of people. -->
    <grafana>
      <password_sha256_hex>$(hash grafana_password)</password_sha256_hex>
      <networks><ip>::/0</ip></networks>
      <profile>evenhand_dashboard</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT SELECT ON evenhand.*</query>
        <query>REVOKE SELECT ON evenhand.interaction_texts</query>
        <query>REVOKE SELECT ON evenhand.interaction_users</query>
        <query>REVOKE SELECT ON evenhand.texts_held</query>
        <query>REVOKE SELECT ON evenhand.erasures</query>
        <query>REVOKE SELECT ON evenhand.texts_erased</query>
        <query>REVOKE SELECT ON evenhand.api_keys</query>
        <query>GRANT SELECT ON system.parts</query>
      </grants>
    </grafana>
  </users>
</clickhouse>
XML
chmod 0444 /users.d/evenhand.xml
