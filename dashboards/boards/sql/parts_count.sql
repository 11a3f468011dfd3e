SELECT count() AS parts FROM system.parts WHERE active AND database = currentDatabase()
