//! The tables of this crate, as diesel sees them on both databases.

diesel::table! {
    team_members (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        email -> Text,
        email_key -> Text,
        role -> Text,
        avatar_url -> Nullable<Text>,
        availability -> Text,
        available_at -> Nullable<Timestamp>,
        capacity -> Nullable<BigInt>,
        languages -> Text,
        joined_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    business_profiles (workspace_id) {
        workspace_id -> BigInt,
        profile -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    contact_notes (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        contact_id -> BigInt,
        body -> Text,
        pinned -> Bool,
        author -> Text,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    reminders (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        livemode -> Bool,
        title -> Text,
        note -> Nullable<Text>,
        status -> Text,
        due_at -> Timestamp,
        timezone -> Text,
        recurrence -> Nullable<Text>,
        contact_id -> Nullable<BigInt>,
        assignee_id -> Nullable<BigInt>,
        action -> Text,
        cancel_on_reply -> Bool,
        next_slot_at -> Nullable<Timestamp>,
        slots_done -> BigInt,
        snoozed_until -> Nullable<Timestamp>,
        wake_at -> Nullable<Timestamp>,
        last_fired_at -> Nullable<Timestamp>,
        fire_count -> BigInt,
        last_error -> Nullable<Text>,
        key_id -> Text,
        metadata -> Text,
        version -> BigInt,
        created_by -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    contact_segments (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        name_key -> Text,
        kind -> Text,
        description -> Nullable<Text>,
        filter -> Nullable<Text>,
        version -> BigInt,
        created_by -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    contact_consents (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        contact_id -> BigInt,
        state -> Text,
        source -> Text,
        proof -> Nullable<Text>,
        actor -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    contact_merges (merged_id) {
        merged_id -> BigInt,
        workspace_id -> BigInt,
        survivor_id -> BigInt,
        external_id -> Nullable<Text>,
        actor -> Text,
        created_at -> Timestamp,
    }
}
