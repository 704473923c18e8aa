//! Declares the group of automations: its area, its log, its jobs, and what it takes.

use crate::conditions::Reading;
use crate::dispatch::{self, Dispatcher};
use crate::firings::log::FIRING_LOG;
use crate::guards::outcomes::Outcomes;
use crate::matching::consumer::FiringEvents;
use crate::matching::rule_sets::RuleSets;
use crate::matching::{Matching, marks};
use crate::messages::takers;
use crate::operations::{automations, executions, fire, trial, trigger_types};
use crate::references::AutomationReferences;
use crate::rules::events::AutomationEvent;
use crate::rules::uses::{AutomationVariables, AutomationsAsUsers};
use crate::surroundings::Surroundings;
use crate::timers::{SilenceReferences, Silences, Sweep};
use events::EventConsumer;
use jobs::Job;
use model::Result;
use operation::{Domain, EventType, Group, Operations, Parts, Services};
use ports::{ChannelTurns, ContactReferences, DatedRecords, MessageTaker, ObjectUsers, VariableUsers};
use std::sync::Arc;
use std::time::Duration;

/// The most marks that one transaction deletes.
const PURGED: i64 = 500;

/// The group of automations.
pub const GROUP: Group =
    Group { declare: |declarations| Ok(declarations.area::<Automations>().log(FIRING_LOG)), start };

fn start(services: &Services) -> Result<Parts> {
    let around = Surroundings {
        flows: services.cloned()?,
        agents: services.cloned()?,
        agent_directory: services.cloned()?,
        functions: services.cloned()?,
        collections: services.cloned()?,
        people: services.cloned()?,
        business: services.cloned()?,
        dated: services.all::<Arc<dyn DatedRecords>>(),
    };
    let reading =
        Reading { people: services.cloned()?, variables: services.cloned()?, business: services.cloned()? };
    let matching = Matching { reading: reading.clone(), rules: RuleSets::default() };
    let dispatcher = Dispatcher { around: around.clone(), reading, directory: services.get()? };
    let sweep = Sweep { around: around.clone(), matching: matching.clone() };
    let turns: Arc<dyn ChannelTurns> = services.cloned()?;
    let mut parts = Parts::default()
        .job(dispatch::job(&dispatcher))
        .job(purge())
        .job(sweep.clone().job())
        .service(sweep)
        .one_of::<Arc<dyn EventConsumer>>(Arc::new(Silences))
        .one_of::<Arc<dyn EventConsumer>>(Arc::new(Outcomes))
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(SilenceReferences))
        .one_of::<Arc<dyn EventConsumer>>(Arc::new(FiringEvents(matching.clone())))
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(AutomationReferences))
        .one_of::<Arc<dyn ObjectUsers>>(Arc::new(AutomationsAsUsers))
        .one_of::<Arc<dyn VariableUsers>>(Arc::new(AutomationVariables));
    for taker in takers(&matching, &around, &turns) {
        parts = parts.one_of::<Arc<dyn MessageTaker>>(taker);
    }
    Ok(parts.service(matching).service(around))
}

fn purge() -> Job {
    let hour = Duration::from_secs(3600);
    Job::every(
        "automations.purge",
        hour,
        "deletes what policies of automations need no longer",
        |job| async move {
            while job.db.write(|tx| marks::purge(tx, PURGED)).await? > 0 {}
            Ok(())
        },
    )
}

/// The area of automations.
pub struct Automations;

impl Domain for Automations {
    const AREA: &'static str = "Automations";
    const ORDER: u16 = 36;
    const DESCRIPTION: &'static str = "An automation starts a flow, an agent or a function when something happens and its conditions \
         hold. Each firing, and each reason not to fire, can be read.";

    fn operations() -> Operations {
        vec![
            Box::new(automations::ListAutomations),
            Box::new(automations::CreateAutomation),
            Box::new(trigger_types::ListTriggerTypes),
            Box::new(automations::GetAutomation),
            Box::new(automations::UpdateAutomation),
            Box::new(automations::DeleteAutomation),
            Box::new(automations::EnableAutomation),
            Box::new(fire::TriggerAutomation),
            Box::new(trial::TestAutomation),
            Box::new(automations::DisableAutomation),
            Box::new(executions::ListAutomationExecutions),
            Box::new(executions::GetAutomationExecution),
        ]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<AutomationEvent<'_>>()
    }
}
