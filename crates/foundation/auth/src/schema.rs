//! Tables of keys, workspaces, partners and plans, as diesel sees them on both databases.

diesel::table! {
    plans (id) {
        id -> Text,
        name -> Text,
        description -> Text,
        price_cents -> BigInt,
        currency -> Text,
        rate_limit_rpm -> Nullable<BigInt>,
        monthly_quota -> Nullable<BigInt>,
        test_runs_per_day -> BigInt,
        contacts_limit -> Nullable<BigInt>,
        included_energy -> BigInt,
        usd_micros_per_1000_energy -> BigInt,
        restricted -> Bool,
        position -> BigInt,
        energy_metered -> Bool,
    }
}

diesel::table! {
    partners (id) {
        id -> BigInt,
        name -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    workspaces (id) {
        id -> BigInt,
        slug -> Text,
        name -> Text,
        partner_id -> Nullable<BigInt>,
        plan_id -> Nullable<Text>,
        subscription_status -> Text,
        period_start -> Nullable<Timestamp>,
        period_end -> Nullable<Timestamp>,
        cancel_at_period_end -> Bool,
        blocked_reason -> Nullable<Text>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        first_steps_hidden -> Bool,
    }
}

diesel::table! {
    api_keys (id) {
        id -> Text,
        secret_hash -> Binary,
        name -> Text,
        env -> Text,
        scopes -> Text,
        lineage_id -> Text,
        workspace_id -> Nullable<BigInt>,
        partner_id -> Nullable<BigInt>,
        default_workspace_id -> Nullable<BigInt>,
        rate_limit_rpm -> Nullable<BigInt>,
        monthly_quota -> Nullable<BigInt>,
        budget_cents -> Nullable<BigInt>,
        budget_cutoff -> Bool,
        budget_version -> BigInt,
        expires_at -> Nullable<Timestamp>,
        revoked_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
        kind -> Text,
        role -> Nullable<Text>,
        member_id -> Nullable<BigInt>,
    }
}

diesel::table! {
    key_requests (lineage_id, day, workspace_id) {
        lineage_id -> Text,
        day -> Text,
        workspace_id -> BigInt,
        requests -> BigInt,
    }
}

diesel::table! {
    idempotency_keys (lineage_id, key) {
        lineage_id -> Text,
        key -> Text,
        fingerprint -> Binary,
        request_id -> Text,
        state -> Text,
        fence -> BigInt,
        lease_until -> Timestamp,
        resource_id -> Nullable<Text>,
        status -> Nullable<BigInt>,
        body -> Nullable<Text>,
        expires_at -> Timestamp,
    }
}

diesel::table! {
    installation (name) {
        name -> Text,
        value -> Text,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    plans,
    partners,
    workspaces,
    api_keys,
    key_requests,
    idempotency_keys,
    installation
);
