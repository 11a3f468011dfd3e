SELECT DISTINCT substring(bias_key, 9) AS characteristic FROM bias_taxonomy WHERE startsWith(bias_key, 'charter.') ORDER BY characteristic
