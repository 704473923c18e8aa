//! The tables of this crate, as diesel sees them on both databases.

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
        chain -> Nullable<Text>,
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
