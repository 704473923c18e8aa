-- The earlier version would set free in the accounts what such holds have set aside, and count their entries in the balances.
UPDATE key_months SET
    spent_micros = spent_micros + COALESCE((SELECT SUM(e.usd_micros) FROM energy_entries e
        JOIN energy_holds h ON h.run_id = e.source_id
        WHERE e.source_type = 'run' AND e.counter_account = 'unmetered' AND h.key_lineage = key_months.lineage_id
            AND h.month = key_months.month), 0),
    reserved_micros = reserved_micros - COALESCE((SELECT SUM(h.reserved_micros) FROM energy_holds h
        WHERE h.state = 'open' AND NOT h.metered AND h.key_lineage = key_months.lineage_id
            AND h.month = key_months.month), 0);
UPDATE energy_holds SET state = 'expired', reserved_micros = 0 WHERE state = 'open' AND NOT metered;
UPDATE energy_entries SET counter_account = 'platform_absorbed' WHERE counter_account = 'unmetered';

ALTER TABLE energy_holds DROP COLUMN metered;
ALTER TABLE plans DROP COLUMN energy_metered;
