//! The lines of business.

use model::text_enum;
use serde::Serialize;
use utoipa::ToSchema;

text_enum! {
    /// What a business does.
    pub enum Vertical {
        /// Accounting, legal advice and other advice.
        Consulting = "consulting",
        /// Hair, beauty and wellness.
        Beauty = "beauty",
        /// Cars: sale, repair and rental.
        Automotive = "automotive",
        /// Schools, courses and coaching.
        Education = "education",
        /// Events and weddings.
        Events = "events",
        /// Banks, loans and investments.
        Finance = "finance",
        /// Gyms and sports.
        Fitness = "fitness",
        /// Doctors, dentists and clinics.
        Healthcare = "healthcare",
        /// Construction, repair and cleaning.
        HomeServices = "home_services",
        /// Insurance.
        Insurance = "insurance",
        /// Marketing and advertising.
        Marketing = "marketing",
        /// Charities and associations.
        Nonprofit = "nonprofit",
        /// Vets, grooming and pet shops.
        Pets = "pets",
        /// Sale and rental of property.
        RealEstate = "real_estate",
        /// Restaurants, cafés and catering.
        Restaurant = "restaurant",
        /// Shops, online and offline.
        Retail = "retail",
        /// Software and IT services.
        Technology = "technology",
        /// Hotels and travel.
        Travel = "travel",
        /// Anything else.
        Other = "other",
    }
}

/// What a business can do, as a choice.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "id": "restaurant", "name": "Restaurants and catering" }))]
pub struct BusinessVertical {
    /// The value of `vertical`.
    pub id: Vertical,
    /// Always `business_vertical`.
    pub object: &'static str,
    /// The name for people.
    pub name: &'static str,
}

impl Vertical {
    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consulting => "Consulting and legal services",
            Self::Beauty => "Beauty and wellness",
            Self::Automotive => "Automotive",
            Self::Education => "Education and coaching",
            Self::Events => "Events and weddings",
            Self::Finance => "Finance",
            Self::Fitness => "Fitness and sports",
            Self::Healthcare => "Healthcare",
            Self::HomeServices => "Home services",
            Self::Insurance => "Insurance",
            Self::Marketing => "Marketing and advertising",
            Self::Nonprofit => "Nonprofit",
            Self::Pets => "Pets",
            Self::RealEstate => "Real estate",
            Self::Restaurant => "Restaurants and catering",
            Self::Retail => "Retail",
            Self::Technology => "Technology",
            Self::Travel => "Travel and hotels",
            Self::Other => "Other",
        }
    }
}

impl From<Vertical> for BusinessVertical {
    fn from(id: Vertical) -> Self {
        Self { id, object: "business_vertical", name: id.name() }
    }
}
