package tides;

/** A water level in millimetres over chart datum, and when it was recorded (seconds since 1970). */
public record Reading(long time, int level) {}
