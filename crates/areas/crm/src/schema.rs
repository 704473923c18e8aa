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
        last_assigned_at -> Nullable<Timestamp>,
        absent_since -> Nullable<Timestamp>,
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
        task_id -> Nullable<BigInt>,
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
        stated_at -> Timestamp,
    }
}

diesel::table! {
    contacts_without_assignee (contact_id) {
        contact_id -> BigInt,
        workspace_id -> BigInt,
        waiting_since -> Timestamp,
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

diesel::table! {
    task_states (task_id) {
        task_id -> BigInt,
        workspace_id -> BigInt,
        parent_id -> Nullable<BigInt>,
        status -> Text,
        user_id -> Nullable<BigInt>,
        agent_id -> Nullable<BigInt>,
        due_at -> Nullable<Timestamp>,
        start_at -> Nullable<Timestamp>,
        is_blocked -> Bool,
    }
}

diesel::table! {
    task_dependencies (task_id, blocker_id) {
        task_id -> BigInt,
        blocker_id -> BigInt,
        workspace_id -> BigInt,
    }
}

diesel::table! {
    task_comments (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        task_id -> BigInt,
        body -> Text,
        author -> Text,
        edited_at -> Nullable<Timestamp>,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    task_files (task_id, file_id) {
        task_id -> BigInt,
        file_id -> BigInt,
        workspace_id -> BigInt,
        attached_by -> Text,
        attached_at -> Timestamp,
    }
}
