#!/bin/sh
# Makes the keys of this deployment on its first start and keeps them: the API key of the HTTP doors,
# the passwords of ClickHouse's two users and Grafana's administrator, and ClickHouse's user file.
set -eu

for name in api_key clickhouse_password grafana_password grafana_admin; do
	[ -s "/keys/$name" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"/keys/$name"
	chmod 0444 "/keys/$name" # read by three images under three user ids; only they mount the volume
done

hash() { tr -d '\n' <"/keys/$1" | sha256sum | cut -d' ' -f1; }

cat >/users.d/evenhand.xml <<XML
<clickhouse>
  <profiles>
    <!-- readonly=2: reading, and settings up to these limits. -->
    <evenhand_reader>
      <readonly>2</readonly>
      <max_execution_time>60</max_execution_time>
      <max_memory_usage>2000000000</max_memory_usage>
      <constraints>
        <max_execution_time><min>1</min><max>300</max></max_execution_time>
        <max_memory_usage><min>1</min><max>2000000000</max></max_memory_usage>
      </constraints>
    </evenhand_reader>
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
    <!-- Figures and codes, no text of people. -->
    <grafana>
      <password_sha256_hex>$(hash grafana_password)</password_sha256_hex>
      <networks><ip>::/0</ip></networks>
      <profile>evenhand_reader</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT SELECT ON evenhand.*</query>
        <query>REVOKE SELECT ON evenhand.interaction_texts</query>
        <query>REVOKE SELECT ON evenhand.interaction_users</query>
      </grants>
    </grafana>
  </users>
</clickhouse>
XML
chmod 0444 /users.d/evenhand.xml
